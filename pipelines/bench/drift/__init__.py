"""How soon a lasting change of a load is found."""
