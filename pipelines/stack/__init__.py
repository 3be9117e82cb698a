"""The embedded services: start, check and stop them."""
