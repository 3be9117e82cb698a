"""The soak: a site under live load for an hour, and whether what its parts hold stays as it is."""
