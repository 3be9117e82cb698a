"""Plans measured against the best there are."""
