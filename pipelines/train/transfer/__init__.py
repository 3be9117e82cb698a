"""What the loads of other jobs teach a short history."""
