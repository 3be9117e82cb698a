"""What a deployment keeps: over a backup and its restore, and over an upgrade and the way back."""
