"""What a contract file may say of live records and a replay that share its job, under `backpressure:`; all optional.

Fields and units are those of the declarative contract of the unified batch-stream runtime paper. What is left out
follows from the promise and the executors (`models/contract/promised`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_serializer,
    model_validator,
)

from configs.bounds import TOPIC, Count, Fraction, Level, Name, NotNegative, Positive, Section, Whole
from configs.limits import (
    EnergyLimit,
    ErrorLimit,
    FairnessTerms,
    LagLimit,
    MemoryLimit,
    NetLimit,
    ObjectiveWeights,
    Priorities,
    RecallLimit,
    RecoveryTerms,
    ShedTerms,
    UtilisationLimit,
)


class Stated(Section):
    """A part of the file; what it does not state is not written either."""

    @model_serializer(mode="wrap")
    def _stated(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        names = {name: one.alias or name for name, one in type(self).model_fields.items()}
        return {names.get(name, name): value for name, value in write(self).items() if value is not None}


class StatedScales(Stated):
    """Divisors of the terms of eq. 3.1: ms, cores, relative error, records/s; None: by promise and executors."""

    latency_ms: Positive | None = None
    energy_cores: Positive | None = None
    error_rel: Positive | None = None
    goodput_rps: Positive | None = None


class StatedPath(Stated):
    """A limit of a latency quantile (eq. 3.3).

    Attributes:
        ops: operators on the path; the whole query where none is named.
        quantile: level, by records; None: what the promise comes to.
        max_ms: limit; None: what the promise comes to.
        kind: `class` in the file, live or replay; a replay has promised nothing, so its path states a limit.
    """

    ops: tuple[Name, ...] = ()
    quantile: Level | None = None
    max_ms: Positive | None = None
    kind: Literal["live", "replay"] = Field("live", alias="class")

    @model_validator(mode="after")
    def _limited(self) -> StatedPath:
        if self.kind == "replay" and (self.quantile is None or self.max_ms is None):
            raise ValueError("a path of the class replay follows from no promise. State its quantile and max_ms")
        return self


class StatedBox(Stated):
    """Bounds of a rate, records/s, and the share of its range that it may move per interval."""

    min: NotNegative | None = None
    max: Positive | None = None
    slew: float = Field(0.1, gt=0, le=1)

    @model_validator(mode="after")
    def _ordered(self) -> StatedBox:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min={self.min:g} is above max={self.max:g}; swap them")
        return self


class StatedShare(Stated):
    """Bounds of theta, the share of the error limits in use."""

    min: Fraction = 0.0
    max: Fraction = 1.0
    slew: float = Field(0.1, gt=0, le=1)

    @model_validator(mode="after")
    def _ordered(self) -> StatedShare:
        if self.min > self.max or self.max == 0:
            raise ValueError(f"min={self.min:g}, max={self.max:g}: a share from min to a max above 0 is expected")
        return self


class StatedControls(Stated):
    """Boxes by control; live records are never held back unless theirs is named, if only as `live_rps: {}`."""

    replay_rps: StatedBox = StatedBox()
    live_rps: StatedBox | None = None
    theta: StatedShare = StatedShare()


class ApartTerms(Stated):
    """An application of its own in which a backfill may be read, away from the live job's executors.

    Attributes:
        executors: that it may have at most.
        command: that starts it, without a shell; `{executors}` in it becomes the number that was planned.
        start_s: from that start until its executors work, wall seconds.
    """

    executors: Count
    command: str = Field(min_length=1)
    start_s: Positive = 45.0

    @field_validator("command")
    @classmethod
    def _readable(cls, command: str) -> str:
        try:
            said = shlex.split(command.format(executors=1))
        except (ValueError, KeyError, IndexError, AttributeError) as error:
            raise ValueError(
                f"{command!r} is no command ({error!r}). Write it as for a terminal, with {{executors}} where their "
                "number belongs"
            ) from None
        if not said:
            raise ValueError("an empty command starts nothing. Leave apart out, or state what starts the application")
        return command

    def argv(self, executors: int) -> list[str]:
        """Return the command that starts it with so many executors."""
        return shlex.split(self.command.format(executors=executors))


_FOLDER = re.compile(r"/[^\x00-\x1f\x7f]*")


def _whole_name(topic: str) -> str:
    if not TOPIC.fullmatch(topic):  # what is told names the key already
        what = "1 to 249 letters a-z, digits, dots, dashes or underscores"
        raise ValueError(f"a topic's whole name is expected, as --topic has it: {what}. State one name a line")
    return topic


def _mounted(path: str) -> str:
    if not _FOLDER.fullmatch(path):
        shown = re.sub("://.*", "://…", path, flags=re.DOTALL)  # an address may hold a password
        what = "no absolute path of a folder that driver, executors and `tidecast backfill` mount alike"
        raise ValueError(f"{shown!r} is {what}. State one, as /lake/sales, without a scheme as s3a:// or file://")
    return path


StatedTables = Annotated[
    Mapping[Annotated[str, AfterValidator(_whole_name)], Annotated[str, AfterValidator(_mounted)]],
    WithJsonSchema(
        {
            "type": "object", "propertyNames": {"pattern": f"^{TOPIC.pattern}$"},
            "additionalProperties": {"type": "string", "pattern": f"^{_FOLDER.pattern}$"},
        }
    ),
]  # fmt: skip
"""Absolute paths of Delta or Parquet tables, by the whole name of the topic whose records each keeps."""


class Backpressure(Stated):
    """The section `backpressure` of a contract; `models/contract/terms.py` has the compiled form.

    Attributes:
        version: of the contract.
        interval_s: from decision to decision, wall seconds.
        seed: for all sampling.
        admit_by: what live records a replay is admitted beside: the most that is forecast for the next interval
            ("forecast", where None), or as many as come by now, the paper's rule alone ("arrivals").
        apart: where a backfill with a deadline may be read instead if that is cheaper; None: always beside live.
        tables: which table keeps what a topic no longer holds, by topic; named where a backfill's range is refused.
            No decision depends on it, so that no message has it.
        weights: prices of latency, energy, error and goodput; who states one states every scale, too.
        scales, paths, lag, controls: by promise and executors where None or left out.
        memory, net, energy, recovery: no such limit where None.
        error, recall: by approximate operator.
    """

    version: Whole = 1
    interval_s: Count = 10
    seed: Whole = 0
    admit_by: Literal["forecast", "arrivals"] | None = None
    apart: ApartTerms | None = None
    tables: StatedTables = Field(default_factory=dict, exclude=True)
    weights: ObjectiveWeights | None = None
    scales: StatedScales = Field(StatedScales(), validate_default=True)
    paths: tuple[StatedPath, ...] = ()
    memory: MemoryLimit | None = None
    lag: LagLimit | None = None
    util_max: UtilisationLimit = UtilisationLimit()
    net: NetLimit | None = None
    energy: EnergyLimit | None = None
    error: Mapping[Name, ErrorLimit] = Field(default_factory=dict)
    recall: Mapping[Name, RecallLimit] = Field(default_factory=dict)
    recovery: RecoveryTerms | None = None
    shed: ShedTerms = ShedTerms()
    priorities: Priorities = Priorities()
    fairness: FairnessTerms = FairnessTerms()
    controls: StatedControls = StatedControls()

    @field_validator("scales")
    @classmethod
    def _scaled(cls, scales: StatedScales, stated: ValidationInfo) -> StatedScales:
        missing = [name for name in StatedScales.model_fields if getattr(scales, name) is None]
        if stated.data.get("weights") is not None and missing:
            what = f"weights are stated, and {missing[0]} is missing"
            raise ValueError(f"{what}: a weight says nothing of a term without its scale. State every scale")
        return scales
