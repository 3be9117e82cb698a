"""What is raised for a value that a person gave us and can correct."""


class SettingsError(ValueError):
    """A setting or a contract is wrong; the message names the key, the value and the remedy."""
