"""What can be wrong with the lake."""

from configs.errors import CorrectableError, FinalError


class LakeError(FinalError):
    """A table cannot be read or written; the message names it and the remedy."""


class LakeFullError(CorrectableError, OSError):
    """The lake's file system takes no more, is read-only or forbids it; the message names it and the remedy."""


class LakeOvertakenError(CorrectableError, RuntimeError):
    """Another ingest committed first; trying again takes what it left, and the message says so."""


class LakeAwayError(CorrectableError, OSError):
    """The file system of the lake does not answer, or not now; the message names the lake and the remedy."""
