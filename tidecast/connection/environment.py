"""Variables of the environment that count where a caller says nothing."""

ADDRESS, PREFIX = "TIDECAST_KAFKA__BOOTSTRAP", "TIDECAST_KAFKA__PREFIX"
"""Of Tidecast's broker, and of the names of its topics."""
ORDER = "TIDECAST_ORDER"
"""Of the key of the order that an application was started for; without it all that are ordered apart are its own."""
SIGNING_KEY = "TIDECAST_SIGNING_KEY"
"""Of the secret with which what a job obeys has to be signed."""
