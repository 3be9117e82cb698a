"""Which kinds there are, how they are held against each other, and which may serve."""
