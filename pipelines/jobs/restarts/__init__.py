"""What a managed job that starts again sets by what its runs before have told."""
