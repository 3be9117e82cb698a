"""Errors whose cause a person can correct, shown as one line without a traceback."""


class CorrectableError(Exception):
    """An error that a person can correct; the message names the thing, its value and the remedy."""


class FinalError(CorrectableError):
    """An error that trying again repeats: Airflow does not retry the task; the message says what to change first."""


class SettingsError(FinalError, ValueError):
    """A setting or a contract is wrong; the message names the key, the value and the remedy."""
