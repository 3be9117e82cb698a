"""What a trained network earns beside others, and whether it may serve."""
