"""Errors that a person can mend."""


class CorrectableError(Exception):
    """What a person can correct; the message names the thing, the value and the remedy, so no traceback is shown."""


class FinalError(CorrectableError):
    """Trying again gives the same error; the message says what has to be changed first, and nothing retries."""


class SettingsError(FinalError, ValueError):
    """A setting or a contract is wrong; the message names the key, the value and the remedy."""
