"""The blend in plain numpy, every step a new value: what the compiled one must compute."""
