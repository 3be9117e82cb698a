"""What forecasters are worth on series from files."""
