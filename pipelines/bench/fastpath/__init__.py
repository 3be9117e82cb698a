"""How long a forecast takes from its measurement, beside floors and peers."""
