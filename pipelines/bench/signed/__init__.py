"""What a signed plan costs beside the plain DataFrame job on a source that only ever appends."""
