"""Errors that only a person can mend."""


class FinalError(Exception):
    """Trying again gives the same error; the message says what has to be changed first, and nothing retries."""


class SettingsError(FinalError, ValueError):
    """A setting or a contract is wrong; the message names the key, the value and the remedy."""
