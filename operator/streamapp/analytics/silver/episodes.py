"""Silver about scaling: each step with its phases, which follow upon each other and sum to what it took."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamapp.analytics.silver.steps import by_day
from streamapp.analytics.spark.sql import query

UP = ("grant", "schedule", "start", "join", "restore", "probe", "settle")
DOWN = ("hold", "drain", "restore", "probe", "settle")
OPTIONAL = ("restore", "probe", "settle")
"""Phases that a step may do without: where their end was not seen they take no time."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What episodes are computed from, besides their events; all that reach into the days in question."""

    pods: DataFrame
    groups: DataFrame
    stints: DataFrame
    rebalances: DataFrame
    steps: DataFrame
    downtime: DataFrame
    marks: DataFrame


def _pods(events: DataFrame, pods: DataFrame) -> DataFrame:
    """When the last new pod was scheduled, and ready; null while one is missing."""
    return query(
        """
        WITH firsts AS (
            SELECT /*+ BROADCAST(e) */ e.event_id, e.cluster, e.to_replicas - e.from_replicas AS wanted, p.ordinal,
                min(CASE WHEN p.is_scheduled AND NOT coalesce(p.is_gone, false) THEN p.ts END) AS scheduled,
                min(CASE WHEN p.is_ready AND NOT coalesce(p.is_gone, false) THEN p.ts END) AS ready
            FROM {pods} p JOIN {events} e
                ON p.cluster = e.cluster AND p.namespace = e.namespace AND p.app = e.app AND p.uid = e.uid
                AND p.dt = e.on_day AND p.ts > e.t_event AND p.ts <= e.t_end
                AND p.ordinal >= e.from_replicas AND p.ordinal < e.to_replicas
            GROUP BY e.event_id, e.cluster, e.to_replicas, e.from_replicas, p.ordinal)
        SELECT event_id, cluster, CASE WHEN count(scheduled) >= max(wanted) THEN max(scheduled) END AS t_scheduled,
            CASE WHEN count(ready) >= max(wanted) THEN max(ready) END AS t_ready
        FROM firsts GROUP BY event_id, cluster
        """,
        pods=pods,
        events=events,
    )


def _joined(events: DataFrame, groups: DataFrame) -> DataFrame:
    return query(
        """
        SELECT /*+ BROADCAST(e) */ e.event_id, e.cluster, min(g.ts) AS t_joined
        FROM {groups} g JOIN {events} e
            ON g.cluster = e.cluster AND g.namespace = e.namespace AND g.app = e.app AND g.uid = e.uid
            AND g.dt = e.on_day AND g.ts > e.t_event AND g.ts <= e.t_end AND size(g.holders) >= e.to_replicas
        GROUP BY e.event_id, e.cluster
        """,
        groups=groups,
        events=events,
    )


def _restored(events: DataFrame, stints: DataFrame) -> DataFrame:
    """When the last copy that was behind meanwhile had caught up, which one that was, and what all of them restored."""
    return query(
        """
        WITH daily AS (SELECT *, explode(sequence(to_date(t_start), to_date(t_end))) AS day FROM {stints})
        SELECT /*+ BROADCAST(e) */ e.event_id, e.cluster, max(coalesce(s.t_caught_up, s.t_end)) AS t_restored,
            max_by(s.task, struct(coalesce(s.t_caught_up, s.t_end), s.task)) AS critical_task,
            sum(CASE WHEN s.t_start >= e.t_event AND s.dt = e.on_day THEN s.restored END) AS restored
        FROM daily s JOIN {events} e
            ON s.cluster = e.cluster AND s.namespace = e.namespace AND s.app = e.app AND s.uid = e.uid
            AND s.day = to_date(e.on_day) AND s.t_start < e.t_end AND s.t_end > e.t_event
        GROUP BY e.event_id, e.cluster
        """,
        stints=stints,
        events=events,
    )


def _things(facts: Facts) -> DataFrame:
    """Rebalances, steps and gaps, once for each `day` that they touch; `least` is what a gap took at least."""
    return query(
        """
        SELECT *, explode(sequence(to_date(least(began, ts)), to_date(ts))) AS day FROM (
            SELECT cluster, namespace, app, uid, ts AS began, ts, 'rebalance' AS what,
                cast(tasks_moved AS double) AS amount, cast(NULL AS double) AS least
            FROM {rebalances}
            UNION ALL SELECT cluster, namespace, app, uid, ts, ts, 'grant', 1D, NULL FROM {steps}
            WHERE step = 'GrantReplicas' AND outcome = 'DONE'
            UNION ALL SELECT cluster, namespace, app, uid, t_stop, t_resume, source, downtime_s,
                greatest(downtime_s - err_s, 0D)
            FROM {downtime} WHERE source IN ('step', 'gap'))
        """,
        rebalances=facts.rebalances,
        steps=facts.steps,
        downtime=facts.downtime,
    )


def _counted(events: DataFrame, facts: Facts) -> DataFrame:
    """What happened within each: rebalances, tasks that moved, steps, the worst gap.

    The gap is the longest of its tasks, or of its completed steps if no task has one. A gap that reaches beyond the
    episode has no lower bound.
    """
    return query(
        """
        WITH within AS (
            SELECT /*+ BROADCAST(e) */ e.event_id, e.cluster, what, ts, amount,
                CASE WHEN began >= e.t_event AND ts <= e.t_end THEN least ELSE least * 0 END AS surely
            FROM {things} t JOIN {events} e
                ON t.cluster = e.cluster AND t.namespace = e.namespace AND t.app = e.app AND t.uid = e.uid
                AND t.day = to_date(e.on_day) AND t.ts > e.t_event AND t.began <= e.t_end),
        counts AS (
            SELECT event_id, cluster, max(CASE WHEN what = 'rebalance' THEN ts END) AS t_probed,
                count_if(what = 'rebalance') AS rebalances,
                cast(sum(CASE WHEN what = 'rebalance' THEN amount END) AS bigint) AS moved_tasks,
                count_if(what = 'grant') AS steps,
                coalesce(max(CASE WHEN what = 'gap' THEN amount END), max(CASE WHEN what = 'step' THEN amount END))
                    AS worst_gap_s,
                CASE WHEN count_if(what = 'gap') > 0 THEN max(CASE WHEN what = 'gap' THEN surely END)
                    ELSE max(CASE WHEN what = 'step' THEN surely END) END AS worst_least
            FROM within GROUP BY event_id, cluster)
        SELECT *, worst_gap_s - worst_least AS worst_gap_err_s FROM counts
        """,
        events=events,
        things=_things(facts),
    )


def _lost(events: DataFrame, marks: DataFrame) -> DataFrame:
    """Lines that the application's recorders say they lost meanwhile."""
    return query(
        """
        SELECT /*+ BROADCAST(m) */ e.event_id, e.cluster, sum(m.dropped) AS lost_lines
        FROM {events} e JOIN {marks} m
            ON m.cluster = e.cluster AND m.namespace = e.namespace AND m.app = e.app AND m.uid = e.uid
            AND m.dt = e.on_day AND m.ts > e.t_event AND m.ts <= e.t_end
        GROUP BY e.event_id, e.cluster
        """,
        events=events,
        marks=marks,
    )


def _phases(names: tuple[str, ...]) -> Column:
    """Seconds by phase: each begins where the one before ended, none reaches beyond the end."""
    ends = {
        "grant": "t_granted",
        "hold": "t_granted",
        "drain": "t_gone",
        "schedule": "t_scheduled",
        "start": "t_ready",
        "join": "t_joined",
        "restore": "t_restored",
        "probe": "t_probed",
    }
    end, edge = F.unix_micros("t_end"), F.unix_micros("t_event")
    parts: list[Column] = []
    for name in names:
        if name == "settle":
            reached = end
        else:
            missing = edge if name in OPTIONAL else F.when(F.col("outcome") == "converged", edge).otherwise(end)
            reached = F.greatest(edge, F.least(F.coalesce(F.unix_micros(ends[name]), missing), end))
        parts += [F.lit(name), (reached - edge) / F.lit(1e6)]
        edge = reached
    return F.create_map(*parts)


def episodes(events: DataFrame, facts: Facts) -> DataFrame:
    """`s_scale_episode`: events as `steps.bounded` gives them, with what happened until their end."""
    told = events
    daily = by_day(events, "t_end")
    for more in (
        _pods(daily, facts.pods),
        _joined(daily, facts.groups),
        _restored(daily, facts.stints),
        _counted(daily, facts),
        _lost(daily, facts.marks),
    ):
        told = told.join(F.broadcast(more), ["event_id", "cluster"], "left")
    seconds = (F.unix_micros("t_end") - F.unix_micros("t_event")) / F.lit(1e6)
    counts = {name: F.coalesce(F.col(name), F.lit(0)) for name in ("rebalances", "moved_tasks", "steps")}
    return told.withColumns(
        {
            **counts,
            # A change of the desired replicas that no line shows is one lost line at least.
            "lost_lines": F.coalesce(F.col("lost_lines"), F.lit(0)) + F.col("has_jumped").cast("int"),
            "restored": F.coalesce(F.col("restored"), F.lit(0)),
            "phases": F.when(F.col("direction") == "up", _phases(UP)).otherwise(_phases(DOWN)),
            "observed_s": seconds,
            "convergence_s": F.when(F.col("outcome") == "converged", seconds),
        }
    )
