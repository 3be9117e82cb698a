"""Errors whose cause a person can correct, shown as one line without a traceback."""

import re

_LOGIN = re.compile(r"(?<=http://)[^\s/]*@|(?<=https://)[^\s/]*@|(?<=://)[^\s/@]*:[^\s/]*@")


def without_logins(text: str) -> str:
    """Return a text without the logins that stand in its addresses, `scheme://user:password@host`.

    Of HTTP also where there is no password: who alone stands there may be a token; elsewhere it is a user's name.
    """
    return _LOGIN.sub("", text)


class CorrectableError(Exception):
    """An error that a person can correct; the message names the thing, its value and the remedy.

    Logins in addresses are left out of it: it reaches logs and pages that more people read than may know them.
    """

    def __init__(self, *args: object) -> None:
        """Keep the message, and what else there is."""
        super().__init__(*(without_logins(one) if isinstance(one, str) else one for one in args))


class FinalError(CorrectableError):
    """An error that trying again repeats: Airflow does not retry the task; the message says what to change first."""


class SettingsError(FinalError, ValueError):
    """A setting or a contract is wrong; the message names the key, the value and the remedy."""
