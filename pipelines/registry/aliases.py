"""The registered versions of every job in one MLflow store, and the aliases that say which one serves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pipelines.registry.artifacts import RegistryError
from pipelines.registry.owned import Champion, OwnedModels
from pipelines.registry.tracking import as_registry_error
from pipelines.registry.way_back import MEASURED, ROLLED_BACK, SERVED, served_before, served_last, taken_back_before

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion

CHAMPION, CHALLENGER, PREVIOUS = "champion", "challenger", "previous"


class AliasStore(OwnedModels):
    """Versions, tags and aliases of registered models; a subclass says which kind of models."""

    def champion_version(self, job: str) -> str | None:
        """Return the version that the job's alias `champion` points to (the one that serves), e.g. "3", or None.

        Raises:
            RegistryError: MLflow does not answer.
            MessageError: no job can have the name.
        """
        return self.alias_version(job, CHAMPION)

    def champions(self) -> dict[str, Champion]:
        """Return {job: its champion, that serves}; one request per 1000 registered models.

        Raises:
            RegistryError: MLflow does not answer.
        """
        ending, found, page = f"-{self.what}", dict[str, Champion](), None
        while True:
            with as_registry_error(f"MLflow at {self._uri}"):
                models = self._client.search_registered_models(f"name LIKE '%{ending}'", 1000, page_token=page)
            found |= {
                one.name.removesuffix(ending): Champion(str(one.aliases[CHAMPION]), one.last_updated_timestamp or 0)
                for one in models if CHAMPION in one.aliases
            }  # fmt: skip
            if not (page := models.token):
                return found

    def alias_version(self, job: str, alias: str) -> str | None:
        """Return the version that an alias of the job points to, e.g. "3"; None where there is no such job or alias.

        Raises:
            RegistryError: MLflow does not answer.
            MessageError: no job can have the name.
        """
        from mlflow.exceptions import MlflowException

        with as_registry_error(f"MLflow at {self._uri}"):
            try:
                return str(self._client.get_model_version_by_alias(self.model_name(job), alias).version)
            except MlflowException as error:
                if not self._has_none(job, error):
                    raise
        return None

    def has_served(self, job: str, version: str) -> bool:
        """Return whether a version serves, or has served before.

        Raises:
            RegistryError: no such job or version, or MLflow does not answer.
            MessageError: no job can have the name.
        """
        if version in (self.champion_version(job), self.alias_version(job, PREVIOUS)):
            return True
        return not {SERVED, MEASURED}.isdisjoint(self.tags(job, version))

    def aliases(self, job: str) -> dict[str, list[str]]:
        """Return {version, e.g. "3": its aliases among `champion`, `challenger`, `previous`} of a job; three requests.

        A challenger is a candidate, the champion serves, previous did before it. Versions without one are left out.

        Raises:
            RegistryError: MLflow does not answer.
            MessageError: no job can have the name.
        """
        found: dict[str, list[str]] = {}
        for alias in (CHAMPION, CHALLENGER, PREVIOUS):
            if version := self.alias_version(job, alias):
                found.setdefault(version, []).append(alias)
        return found

    def set_champion(self, job: str, version: str) -> None:
        """Point the job's alias `champion` at the version that is to serve, and `previous` at the champion until now.

        Does nothing where the version is the champion already.

        Raises:
            ForeignModelError: the model is another deployment's, or somebody else's; nothing has changed.
            RegistryError: MLflow does not answer.
            MlflowException: no such version, and nothing has changed; or MLflow stops answering, maybe after `previous`
                is set.
            MessageError: no job can have the name.
        """
        self.refuse_foreign(job)
        if (before := self.champion_version(job)) != version:
            self._move(job, before, version)

    def succeed(self, job: str, version: str, before: str | None) -> bool:
        """Make a version champion in place of the one it was compared with; returns whether it serves.

        It does not where another one serves by now. MLflow moves no alias on a condition: where a person takes `before`
        back at the same moment, the tag of it tells, and what the person wants serves.

        Args:
            job: whose version.
            version: that is to serve.
            before: the champion that it was compared with; None where there was none.

        Raises:
            ForeignModelError, RegistryError, MlflowException, MessageError: as `set_champion`.
        """
        self.refuse_foreign(job)
        noted = self._back_to(job, before)
        if self.champion_version(job) != before:
            return False
        self._move(job, before, version)
        if before is not None and (back := self._back_to(job, before)) not in (None, noted):
            self._move(job, before, back)
        return self.champion_version(job) == version

    def roll_back(self, job: str) -> tuple[str, str]:
        """Make the version champion (it serves) again that served before, and the champion until now `previous`.

        The latter also gets the tag `rolled_back`, and while it holds (`taken_back`) training promotes nobody. A
        version with that tag is not gone back to, so a second call goes further back, by the tags `served`. One that
        was broken off is gone on with.

        Returns:
            The champion's version before and after, e.g. ("3", "2").

        Raises:
            ForeignModelError: the model is another deployment's, or somebody else's; nothing has changed.
            RegistryError: there is no champion or none before it but what was taken back, or MLflow does not answer.
            MlflowException: MLflow refuses to change an alias or tag.
            MessageError: no job can have the name.
        """
        self.refuse_foreign(job)
        present, previous = self.champion_version(job), self.alias_version(job, PREVIOUS)
        if present is None:
            last = served_before(self.versions(job), "", previous) or previous
            ended = f"none serves any more: {self._letting_serve(job, last)}" if last else "none has served yet"
            raise self._nothing_back(job, ended)
        broken_off = present == previous  # one alias was moved: of a rollback the tag tells where the other one goes
        back = self._back_to(job, present) if broken_off else None
        if back is None:
            back = served_before(self.versions(job), present, None if broken_off else previous)
        if back is None:
            left = taken_back_before(self.versions(job), present)
            again = self._letting_serve(job, left[-1]) if left else ""
            but = f" but {', '.join(left)}, taken back by a person: {again}" if left else ""
            raise self._nothing_back(job, f"none served before version {present}{but}")
        self.set_version_tags(job, present, {ROLLED_BACK: back})  # first: what serves is never unheld
        self._move(job, present, back)
        return present, back

    def taken_back(self, job: str) -> str | None:
        """Return the version that a person took back for the one that serves now, e.g. "3"; None where nobody did.

        Whoever lets another version serve since, by `promote` or by the alias in MLflow, has ended that, also where
        that one is deleted later; who deletes the one that serves in its stead has not.

        Raises:
            RegistryError: MLflow does not answer.
            MessageError: no job can have the name.
        """
        left = self.alias_version(job, PREVIOUS)
        back, serves = self._back_to(job, left), self.champion_version(job)
        if serves is None:  # a version whose alias went elsewhere is still there
            return left if back not in {None, *(str(one.version) for one in self.versions(job))} else None
        return left if back == serves else None

    def promote(self, job: str, version: str) -> None:
        """Make a version champion by a person's word, see `set_champion`; it is taken back no longer, if it was.

        Where it serves already in the stead of one that was taken back, this ends that trainings promote nobody:
        `previous` then points at the version that served before both, or at none.

        Raises:
            ForeignModelError: the model is another deployment's, or somebody else's; nothing has changed.
            RegistryError: MLflow does not answer.
            MlflowException: no such version, and nothing has changed; or MLflow refuses to change an alias or tag.
            MessageError: no job can have the name.
        """
        self.set_champion(job, version)
        if self._back_to(job, version) is not None:
            self._client.delete_model_version_tag(self.model_name(job), version, ROLLED_BACK)
        if self.taken_back(job) is not None:
            self._end_hold(job, version)

    def set_version_tags(self, job: str, version: str, tags: Mapping[str, str]) -> None:
        """Set tags of a version, with a request for each; others stay.

        Raises:
            MlflowException: no such version, or MLflow does not answer.
            MessageError: no job can have the name.
        """
        for key, value in tags.items():
            self._client.set_model_version_tag(self.model_name(job), version, key, value)

    def tags(self, job: str, version: str) -> dict[str, str]:
        """Return the tags of a version.

        Raises:
            RegistryError: no such job or version, or MLflow does not answer.
            MessageError: no job can have the name.
        """
        return dict(self._version(job, version).tags)

    def _move(self, job: str, before: str | None, version: str) -> None:
        """Point `previous` at the champion until now, and `champion` at a version that there is; note when that was."""
        self._client.get_model_version(self.model_name(job), version)
        if before is not None:
            self._client.set_registered_model_alias(self.model_name(job), PREVIOUS, before)
        elif (left := self.taken_back(job)) is not None:  # in the stead of one that was deleted
            self.set_version_tags(job, left, {ROLLED_BACK: version})
        elif self._back_to(job, self.alias_version(job, PREVIOUS)) == version:  # a person has ended that it is held
            self._end_hold(job, version)
        self._client.set_registered_model_alias(self.model_name(job), CHAMPION, version)
        self.set_version_tags(job, version, {SERVED: datetime.now(UTC).isoformat(timespec="seconds")})

    def _end_hold(self, job: str, version: str) -> None:
        if (earlier := served_last(self.versions(job), version)) is None:
            self._client.delete_registered_model_alias(self.model_name(job), PREVIOUS)
        else:
            self._client.set_registered_model_alias(self.model_name(job), PREVIOUS, earlier)

    def _letting_serve(self, job: str, version: str) -> str:
        command = " ".join(["tidecast models promote", job, version, *["--agent"] * (self.what == "agent")])
        return f"`{command}` lets it serve again"

    def _nothing_back(self, job: str, why: str) -> RegistryError:
        return RegistryError(f"{self.model_name(job)} at {self._uri}: nothing to go back to, {why}.")

    def _back_to(self, job: str, version: str | None) -> str | None:
        """The version that serves in the stead of one that was taken back."""
        return None if version is None else self.tags(job, version).get(ROLLED_BACK)

    def _version(self, job: str, version: str) -> ModelVersion:
        with as_registry_error(f"{self.model_name(job)} version {version} at {self._uri}"):
            return self._client.get_model_version(self.model_name(job), version)
