"""The columns of silver and gold, by hand; docs/analytics.md says what each means and in which unit.

Every table has `dt` beside these, the UTC day that a row belongs to and is rewritten with.
"""

from typing import Final

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from streamapp.analytics.tables.bronze_schemas import BLOCKER, DOUBLE, FLAG, HOLDER, LONG, TEXT, TEXTS, TIME

SECONDS: Final = DOUBLE
KEY: Final = ("cluster", "namespace", "app", "uid")
"""What tells an application from every other."""


def _table(**types: DataType) -> StructType:
    keys = [StructField(name, TEXT) for name in KEY]
    return StructType([*keys, *(StructField(name, kind) for name, kind in types.items())])


_COPY = {"task": TEXT, "ordinal": LONG, "process_id": TEXT, "role": TEXT}
_OF_TIME = StructType([StructField("t_first", TIME), StructField("t_last", TIME)])
_SPAN = {"t_start": TIME, "t_end": TIME}

SILVER: Final = {
    "s_config": _table(
        valid_from=TIME,
        valid_to=TIME,
        application_id=TEXT,
        image=TEXT,
        tasks=LONG,
        stateful_tasks=TEXTS,
        acceptable_recovery_lag=LONG,
        application_recovery_lag=LONG,
        lag_limit=LONG,
        learner_source=TEXT,
        standby_replicas=LONG,
        stabilization_seconds=SECONDS,
        timeout_seconds=SECONDS,
        scale_down_policy=TEXT,
        paused=FLAG,
        dry_run=FLAG,
    ),
    "s_seen": _table(t_first=TIME, t_last=TIME, lines=LONG, watched_s=SECONDS, spans=ArrayType(_OF_TIME)),
    "s_learner_sample": _table(
        **_COPY,
        state=TEXT,
        source=TEXT,
        ts=TIME,
        seq=LONG,
        offset=LONG,
        end_offset=LONG,
        lag=LONG,
        lag_limit=LONG,
        interval_seconds=SECONDS,
    ),
    "s_decision_interval": _table(
        **_SPAN,
        verdict=TEXT,
        reason=TEXT,
        desired=LONG,
        granted=LONG,
        actual=LONG,
        ready=LONG,
        hold_id=TEXT,
        hold_since=TIME,
        target=LONG,
        blocking=ArrayType(BLOCKER),
        blocking_count=LONG,
        furthest_lag=LONG,
        converged=FLAG,
        converging_reason=TEXT,
        eta_seconds=SECONDS,
    ),
    "s_layout_interval": _table(
        **_SPAN, epoch=LONG, state=TEXT, protocol=TEXT, holders=ArrayType(HOLDER), follow_up=FLAG
    ),
    "s_pod_interval": _table(
        ordinal=LONG,
        **_SPAN,
        pod_uid=TEXT,
        is_gone=FLAG,
        node=TEXT,
        revision=TEXT,
        container_id=TEXT,
        is_scheduled=FLAG,
        is_ready=FLAG,
        is_terminating=FLAG,
        process_id=TEXT,
        volume=TEXT,
        state_bytes=LONG,
    ),
    "s_autoscaler_interval": _table(
        name=TEXT,
        **_SPAN,
        aims_at=TEXT,
        min_replicas=LONG,
        max_replicas=LONG,
        current_replicas=LONG,
        desired_replicas=LONG,
        is_active=FLAG,
    ),
    "s_learner_stint": _table(
        **_COPY,
        **_SPAN,
        t_caught_up=TIME,
        end_reason=TEXT,
        lag_start=LONG,
        samples=LONG,
        restored=LONG,
        gross_rate=DOUBLE,
        append_rate=DOUBLE,
        net_rate=DOUBLE,
        grade=TEXT,
    ),
    "s_downtime": _table(
        task=TEXT, source=TEXT, hold_id=TEXT, t_stop=TIME, t_resume=TIME, downtime_s=SECONDS, err_s=SECONDS
    ),
    "s_hold_interval": _table(
        hold_id=TEXT,
        **_SPAN,
        hold_s=SECONDS,
        reason=TEXT,
        task=TEXT,
        ordinal=LONG,
        share_s=SECONDS,
        sole_s=SECONDS,
        critical=FLAG,
    ),
    "s_assignment_interval": _table(
        epoch=LONG,
        **_SPAN,
        process_id=TEXT,
        ordinal=LONG,
        active=LONG,
        stateful_active=LONG,
        standby=LONG,
        threads=LONG,
    ),
    "s_rebalance": _table(
        epoch=LONG,
        ts=TIME,
        members=LONG,
        members_joined=LONG,
        members_left=LONG,
        tasks_moved=LONG,
        moved_back=LONG,
        follow_up=FLAG,
    ),
    "s_scale_episode": _table(
        event_id=TEXT,
        t_event=TIME,
        t_end=TIME,
        from_replicas=LONG,
        to_replicas=LONG,
        direction=TEXT,
        actor=TEXT,
        outcome=TEXT,
        convergence_s=SECONDS,
        observed_s=SECONDS,
        phases=MapType(TEXT, DOUBLE),
        critical_task=TEXT,
        moved_tasks=LONG,
        rebalances=LONG,
        restored=LONG,
        steps=LONG,
        worst_gap_s=SECONDS,
        worst_gap_err_s=SECONDS,
        lost_lines=LONG,
    ),
    "s_outage": _table(
        task=TEXT,
        source=TEXT,
        t_stop=TIME,
        t_end=TIME,
        at_least_s=SECONDS,
        at_most_s=SECONDS,
        cause=TEXT,
        begins=FLAG,
        is_open=FLAG,
    ),
}

GOLD: Final = {
    "g_downtime_daily": _table(
        tasks=LONG,
        task_s=SECONDS,
        n=LONG,
        at_least_s=SECONDS,
        at_most_s=SECONDS,
        by_cause=MapType(TEXT, DOUBLE),
        worst_s=SECONDS,
        worst_task=TEXT,
        open=LONG,
    ),
    "g_restore_profile": _table(
        scope=TEXT,
        subtopology=TEXT,
        task=TEXT,
        volume=TEXT,
        node=TEXT,
        n_stints=LONG,
        rate_p10=DOUBLE,
        rate_p50=DOUBLE,
        rate_p90=DOUBLE,
        rate_mean=DOUBLE,
        rate_learned=DOUBLE,
        updated=TIME,
    ),
    "g_convergence_daily": _table(
        direction=TEXT,
        n=LONG,
        n_converged=LONG,
        n_censored=LONG,
        km_p50=SECONDS,
        km_p90=SECONDS,
        km_p99=SECONDS,
        phase_share=MapType(TEXT, DOUBLE),
        slo_met=FLAG,
    ),
    "g_hold_blame": _table(
        reason=TEXT, task=TEXT, ordinal=LONG, blame_s=SECONDS, sole_s=SECONDS, critical_n=LONG, holds=LONG
    ),
    "g_skew_daily": _table(max_share=DOUBLE, imbalance=DOUBLE, gini=DOUBLE, seen_s=SECONDS, bad_s=SECONDS),
    "g_autoscaler_daily": _table(
        events=LONG,
        reversals=LONG,
        flap_pairs=LONG,
        wasted_events=LONG,
        wasted_slots=LONG,
        replica_h=DOUBLE,
        held_replica_h=DOUBLE,
    ),
    "g_churn_daily": _table(rebalances=LONG, tasks_moved=LONG, moved_back=LONG, pid_changes=LONG, ghost_members=LONG),
}
