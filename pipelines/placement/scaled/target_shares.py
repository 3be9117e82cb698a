"""Keeps the targets of a job's queries shares of the job's, as the queries move."""

from __future__ import annotations

from collections.abc import Callable

from configs.settings import Settings
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.scaled.contracts import update_targets


class TargetShares:
    """Shares the job's target out anew whenever its queries are wanted elsewhere."""

    def __init__(self, settings: Settings, folder: JobFolder, say: Callable[[str], None] = print) -> None:
        """Nothing is changed yet.

        Args:
            settings: with the folder of the contracts.
            folder: of the job, which was begun.
            say: called with what a person is told.
        """
        self._settings, self._folder, self._say = settings, folder, say
        self._shared_s: float | None = None

    def step(self) -> None:
        """Share the target out, if the queries are wanted elsewhere since the last call that did.

        Raises:
            SettingsError, OSError: the job's folder is wrong; a file cannot be read or written.
        """
        since_s = self._folder.wanted_since_s()
        if since_s != self._shared_s:
            for changed in update_targets(self._settings, self._folder):
                self._say(changed)
            self._shared_s = since_s

    def close(self) -> None:
        """Hold nothing."""
