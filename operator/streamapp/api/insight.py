"""The contract of insight: what the pipeline learned of applications, for the operator to show and never to act on.

`streamapp.analytics` writes it, and `docs/insight.schema.json` publishes it. `parse` reads what is not trusted: insight
that is large, deep, old, from the future or out of bounds is refused as a whole. `streamapp.core` cannot import it, so
no decision depends on it. `kubectl streamapp advise` shows the advice to people, who decide for themselves.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

VERSION: Final = 1
FILE: Final = "insight.json"
"""Its name in a folder, and its key in a ConfigMap."""
MOST_BYTES: Final = 900_000
"""A ConfigMap holds 1 MiB."""
MOST_APPS: Final = 1_000
MOST_RATES: Final = 200
MOST_ADVICE: Final = 8
MOST_VETOES: Final = 8
LONGEST_LINE: Final = 1024
LONGEST_VALID: Final = timedelta(days=8)
SKEW: Final = timedelta(minutes=5)
"""By which the clock of the pipeline can be ahead."""
LEAST_COVER: Final = 0.85
MOST_COVER: Final = 0.97
LEAST_HOLDS: Final = 20

Count = Annotated[int, Field(ge=0, le=2**53, strict=True)]
Amount = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False, strict=True)]
Signed = Annotated[float, Field(ge=-1e9, le=1e9, allow_inf_nan=False, strict=True)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]
Factor = Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False, strict=True)]
Name = Annotated[str, Field(max_length=253, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$", strict=True)]
Line = Annotated[str, Field(max_length=LONGEST_LINE, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$", strict=True)]
ObjectName = Annotated[str, Field(max_length=253, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", strict=True)]


def _json_object(text: str) -> str:
    """Refuse what is no JSON object: people are shown it as a patch to apply."""
    if not isinstance(from_json(text, allow_inf_nan=False), dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 (pydantic turns only this one into a refusal)
    return text


def _in_utc(time: datetime) -> datetime:
    """Refuse what has no time in UTC, in which people are shown it: the first and last hours of the calendar."""
    try:
        return time.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("it is no time in UTC") from error


Time = Annotated[AwareDatetime, AfterValidator(_in_utc)]
PatchText = Annotated[Line, AfterValidator(_json_object)]


class _Part(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )


class RestoreRate(_Part):
    """How fast copies of a subtopology restored, everywhere or on one volume."""

    subtopology: Name
    volume: Name = ""
    """Claim of the volume; empty: all volumes of the subtopology."""
    p10: Amount
    """Offsets a second; a tenth of the restores was slower."""
    p50: Amount
    p90: Amount
    n: Count
    """Restores that were measured."""
    days: Count
    """UTC days from the first to the last of all restores of the application."""


class EtaScore(_Part):
    """How good the estimated completion times of scale-downs were, over 28 days."""

    cover: Share
    """Share of looks whose scale-down ended inside the range. Each hold has the same weight. The factors of a look are
    from the days before it."""
    median_error_seconds: Signed
    """Time of completion minus the estimated time; positive: too early an estimate."""
    low: Factor
    """The true time left is this part of the estimated time left, or more, in 19 of 20 looks."""
    high: Factor
    """The true time left is this part of the estimated time left, or less, in 19 of 20 looks."""
    holds: Count
    """Holds that `cover` is made of."""
    days: Count
    """UTC days with such holds."""

    @property
    def is_good(self) -> bool:
        """Whether a range that is made of these factors can be shown."""
        return LEAST_COVER <= self.cover <= MOST_COVER and self.holds >= LEAST_HOLDS and self.low <= self.high


class LearnedEta(_Part):
    """Estimates by restore rates of earlier days, for looks at which two measurements of the lag are missing."""

    rates: Annotated[dict[Name, Amount], Field(max_length=MOST_RATES)]
    """Offsets a second by subtopology: the median of the restores of 28 days."""
    score: EtaScore
    """Of such estimates alone; each day is scored with the rates and the factors of the days before it."""

    def seconds(self, waits: Iterable[tuple[str, int | None]]) -> float | None:
        """How long the slowest copy takes; see `restore_seconds`."""
        return restore_seconds(self.rates, waits)


def restore_seconds(rates: Mapping[str, float], waits: Iterable[tuple[str, int | None]]) -> float | None:
    """How long the slowest copy takes; None if nothing is waited for, or a rate or a lag is unknown.

    Args:
        rates: Offsets a second by subtopology.
        waits: The subtopology of each task that is waited for, and the lag of its nearest copy in offsets.
    """
    found = [None if lag is None or not rates.get(name) else lag / rates[name] for name, lag in waits]
    known = [seconds for seconds in found if seconds is not None]
    return max(known) if known and len(known) == len(found) else None


class Budget(_Part):
    """Downtime of the newest month."""

    month: Annotated[str, Field(pattern=r"^\d{4}-\d{2}$", strict=True)]
    lost_seconds: Amount
    """Task-seconds without processing, at most."""
    budget_seconds: Amount | None = None
    """Task-seconds that can be lost in the whole month. Absent: unknown."""


class Effect(_Part):
    """What following advice would have changed on the days that were looked at."""

    low: Signed
    mid: Signed
    high: Signed
    unit: Line


class Patch(_Part):
    """A merge patch of one object in the namespace of the StreamApp."""

    kind: Literal["HorizontalPodAutoscaler", "StreamApp"]
    name: ObjectName = ""
    """Empty: the record does not name the object."""
    patch: PatchText
    """A JSON object."""


class Advice(_Part):
    """One thing to change, for a person to judge."""

    knob: Line
    """What to change, for example `HorizontalPodAutoscaler scaleUp window`."""
    current: Line
    proposed: Line
    evidence: Line
    """The figures, as a sentence."""
    days: Count
    """UTC days that were looked at."""
    n: Count
    """Cases that the figures are made of."""
    effect: Effect | None = None
    vetoes: Annotated[tuple[Line, ...], Field(max_length=MOST_VETOES)] = ()
    """What speaks against it, and must be looked at first."""
    patch: Patch | None = None
    """Absent: no single field of these objects does it."""


class AppInsight(_Part):
    """What was learned of one StreamApp."""

    namespace: Name
    app: Name
    uid: Name
    """Of the StreamApp: a new StreamApp under an old name is another application."""
    restore_rates: Annotated[tuple[RestoreRate, ...], Field(max_length=MOST_RATES)] = ()
    eta: EtaScore | None = None
    """Of estimates by two measurements of the lag. Absent: too few looks."""
    learned_eta: LearnedEta | None = None
    """Absent: too few looks."""
    budget: Budget | None = None
    days: Count = 0
    """UTC days that the rules of advice looked at."""
    advice: Annotated[tuple[Advice, ...], Field(max_length=MOST_ADVICE)] = ()
    """The first pieces of advice. Empty: there is nothing to advise."""


class Insight(_Part):
    """What was learned of the applications of one cluster."""

    v: Literal[1] = VERSION
    """Version of this contract."""
    cluster: Name
    """Name of the Kubernetes cluster from the operator's settings; can be empty."""
    made_at: Time
    valid_until: Time
    left_out: Count = 0
    """Applications that had no room."""
    apps: Annotated[tuple[AppInsight, ...], Field(max_length=MOST_APPS)] = ()

    def of(self, namespace: str, app: str, uid: str) -> AppInsight | None:
        """What was learned of this StreamApp; None if there is nothing, or more than one answer."""
        found = [one for one in self.apps if (one.namespace, one.app, one.uid) == (namespace, app, uid)]
        return found[0] if len(found) == 1 and uid else None


class InsightRefusedError(ValueError):
    """This insight cannot be used."""


class InsightExpiredError(InsightRefusedError):
    """This insight was good until `valid_until`."""

    def __init__(self, insight: Insight) -> None:
        super().__init__("it is no longer valid")
        self.made_at = insight.made_at
        self.valid_until = insight.valid_until


_INSIGHT: Final = TypeAdapter(Insight)


def parse(text: bytes, cluster: str | None, now: datetime) -> Insight:
    """Read insight that anybody can have written.

    Args:
        text: JSON.
        cluster: the own name from the settings; None where it is not known.
        now: the time.

    Raises:
        InsightExpiredError: it was good, and is too old.
        InsightRefusedError: any part of it is out of bounds, or it is too new or of another cluster.
    """
    if len(text) > MOST_BYTES:
        raise InsightRefusedError(f"it has {len(text)} bytes, more than {MOST_BYTES}")
    try:
        found = _INSIGHT.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))[:200]
        raise InsightRefusedError(f"{where or 'it'}: {first['msg'][:200]}") from None
    if cluster is not None and found.cluster != cluster:
        raise InsightRefusedError("it is of another cluster")
    _require_in_time(found, now)
    return found


def _require_in_time(found: Insight, now: datetime) -> None:
    if found.made_at - now > SKEW:
        raise InsightRefusedError("it was made in the future")
    if not timedelta(0) < found.valid_until - found.made_at <= LONGEST_VALID:
        raise InsightRefusedError(f"it is not valid for a time of at most {LONGEST_VALID.days} days")
    if found.valid_until <= now:
        raise InsightExpiredError(found)


class _Made(BaseModel):
    """The part of any version of this contract that says how new it is."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore")
    made_at: AwareDatetime


def is_newer(text: str, than: datetime, now: datetime) -> bool:
    """Whether this is insight of any version that was made later than `than`, and not in the future."""
    try:
        found = _Made.model_validate_json(text)
    except ValidationError:
        return False
    return than < found.made_at <= now + SKEW


def to_json(insight: Insight) -> bytes:
    """The insight as JSON; fields without a value are left out."""
    return _INSIGHT.dump_json(insight, by_alias=True, exclude_none=True) + b"\n"


def schema() -> dict[str, object]:
    """JSON Schema of the whole."""
    return _INSIGHT.json_schema(by_alias=True, mode="validation")
