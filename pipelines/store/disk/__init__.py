"""What lies in the file, and how it is found there."""
