"""The columns of bronze, by hand: what `streamapp.flightrecord.schema` says, one table for each kind of line.

A column is named as the model's field; `camel` gives the name in a line. A test compares every field of every model
with what stands here. Numbers of pods, tasks and offsets are 64 bits wide, times are microseconds in UTC.
"""

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

VERSIONS: Final = (1,)
"""Versions of the contract that are read."""

TEXT, LONG, DOUBLE, FLAG, TIME = StringType(), LongType(), DoubleType(), BooleanType(), TimestampType()
TEXTS = ArrayType(TEXT)
EXTRA: Final = "extra"
"""Column of fields that are not in the contract: their JSON by their name."""


def _fields(**types: DataType) -> tuple[StructField, ...]:
    return tuple(StructField(name, kind) for name, kind in types.items())


BLOCKER = StructType(list(_fields(task=TEXT, ordinal=LONG, lag=LONG)))
HOLDER = StructType(
    list(_fields(process_id=TEXT, ordinal=LONG, active=TEXTS, standby=TEXTS, threads=LONG)),
)
LINE = _fields(v=LONG, cluster=TEXT, namespace=TEXT, app=TEXT, uid=TEXT, ts=TIME, recorder=TEXT, seq=LONG)

OWN: Final[dict[str, tuple[StructField, ...]]] = {
    "sample": _fields(
        task=TEXT,
        role=TEXT,
        state=TEXT,
        ordinal=LONG,
        process_id=TEXT,
        offset=LONG,
        end_offset=LONG,
        source=TEXT,
        interval_seconds=DOUBLE,
        epoch=LONG,
    ),
    "scale": _fields(old_replicas=LONG, new_replicas=LONG, actor=TEXT, manager=TEXT, generation=LONG),
    "decision": _fields(
        verdict=TEXT,
        reason=TEXT,
        detail=TEXT,
        desired=LONG,
        granted=LONG,
        actual=LONG,
        ready=LONG,
        hold_id=TEXT,
        hold_since=TIME,
        target=LONG,
        blocking=ArrayType(BLOCKER),
        blocking_count=LONG,
        eta_seconds=DOUBLE,
        converged=FLAG,
        converging_reason=TEXT,
    ),
    "step": _fields(
        step=TEXT, outcome=TEXT, reason=TEXT, hold_id=TEXT, from_replicas=LONG, to_replicas=LONG, ordinal=LONG
    ),
    "stepClosed": _fields(
        hold_id=TEXT,
        from_replicas=LONG,
        to_replicas=LONG,
        granted_at=TIME,
        took_seconds=DOUBLE,
        held_seconds=DOUBLE,
        worst_gap_seconds=DOUBLE,
        gap_error_seconds=DOUBLE,
        forced_by=TEXT,
    ),
    "gap": _fields(task=TEXT, ordinal=LONG, process_id=TEXT, last_ran_at=TIME, stood_seconds=DOUBLE, source=TEXT),
    "pod": _fields(
        ordinal=LONG,
        pod_uid=TEXT,
        is_gone=FLAG,
        node=TEXT,
        revision=TEXT,
        is_scheduled=FLAG,
        is_running=FLAG,
        is_ready=FLAG,
        is_terminating=FLAG,
        container_id=TEXT,
        process_id=TEXT,
        volume=TEXT,
        state_bytes=LONG,
        free_bytes=LONG,
    ),
    "group": _fields(epoch=LONG, state=TEXT, protocol=TEXT, holders=ArrayType(HOLDER), follow_up=FLAG),
    "autoscaler": _fields(
        name=TEXT,
        aims_at=TEXT,
        min_replicas=LONG,
        max_replicas=LONG,
        current_replicas=LONG,
        desired_replicas=LONG,
        is_active=FLAG,
    ),
    "config": _fields(
        generation=LONG,
        application_id=TEXT,
        image=TEXT,
        tasks=LONG,
        stateful_tasks=TEXTS,
        threads=LONG,
        acceptable_recovery_lag=LONG,
        learner_source=TEXT,
        standby_replicas=LONG,
        stabilization_seconds=DOUBLE,
        timeout_seconds=DOUBLE,
        scale_down_policy=TEXT,
        settle_seconds=DOUBLE,
        paused=FLAG,
        dry_run=FLAG,
    ),
    "recorder": _fields(mark=TEXT, dropped=LONG, operator_version=TEXT),
}
"""Columns of each kind beside those of every line."""

TABLES: Final = {
    "sample": "b_sample",
    "scale": "b_scale",
    "decision": "b_decision",
    "step": "b_step",
    "stepClosed": "b_step_closed",
    "gap": "b_gap",
    "pod": "b_pod",
    "group": "b_group",
    "autoscaler": "b_autoscaler",
    "config": "b_config",
    "recorder": "b_recorder",
}
"""The table of each kind."""

QUARANTINE: Final = "b_quarantine"
QUARANTINE_SCHEMA = StructType(list(_fields(raw=TEXT, rule=TEXT, file=TEXT, line=LONG)))


def camel(name: str) -> str:
    """The name of a column's field in a line."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def table_schema(kind: str) -> StructType:
    """All columns of a kind's table."""
    return StructType([*LINE, *OWN[kind], StructField(EXTRA, MapType(TEXT, TEXT))])


SCHEMAS: Final = {table: table_schema(kind) for kind, table in TABLES.items()} | {QUARANTINE: QUARANTINE_SCHEMA}


def columns() -> dict[str, DataType]:
    """Every column of any kind, `kind` included; a name that several kinds use has one type.

    Raises:
        TypeError: two kinds use one name for different types.
    """
    found: dict[str, DataType] = {field.name: field.dataType for field in LINE} | {"kind": TEXT}
    for fields in OWN.values():
        for field in fields:
            if found.setdefault(field.name, field.dataType) != field.dataType:
                msg = f"column {field.name} has two types"
                raise TypeError(msg)
    return found


def in_line(type_: DataType) -> DataType:
    """The type as a line has it: its nested fields in camel case."""
    if isinstance(type_, ArrayType):
        return ArrayType(in_line(type_.elementType))
    if isinstance(type_, StructType):
        return StructType([StructField(camel(field.name), in_line(field.dataType)) for field in type_])
    return type_
