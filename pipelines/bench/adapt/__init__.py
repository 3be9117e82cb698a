"""What other loads teach a short history."""
