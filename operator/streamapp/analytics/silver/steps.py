"""Silver about scaling: what held a step and how much of it, and each step with its phases and its end."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamapp.analytics.spark.sql import query

LONGEST_LOOK = 300
"""Seconds after a look during a hold from which on the blocking tasks are unknown: the rest is `Unrecorded`."""
LONGEST_EPISODE_HOURS = 24
"""After that a step counts as not seen to its end."""


def furthest_lag() -> Column:
    """Of the blocking tasks, which a line names with the unknown lags first, then the largest; null if unknown."""
    return F.try_element_at("blocking", F.lit(1))["lag"]


def _named(decisions: DataFrame) -> DataFrame:
    """Decisions that hold pods, with the `hold` that they belong to on their day.

    The operator opens no hold where a user, the stabilization window or a floor of one pod keeps pods: such decisions
    for one number of desired replicas that follow upon each other are one hold all the same.
    """
    return query(
        """
        WITH lined AS (
            SELECT *, coalesce(hold_id, '') = '' AS is_nameless, coalesce(desired = lag(desired) OVER w
                AND lag(verdict = 'Hold' AND coalesce(hold_id, '') = '') OVER w, false) AS goes_on
            FROM {decisions}
            WINDOW w AS (PARTITION BY cluster, namespace, app, uid, dt ORDER BY t_start)),
        numbered AS (
            SELECT *, max(CASE WHEN NOT goes_on THEN t_start END) OVER (
                PARTITION BY cluster, namespace, app, uid, dt ORDER BY t_start) AS began
            FROM lined)
        SELECT *, CASE WHEN is_nameless THEN concat('since ', date_format(began, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"))
            ELSE hold_id END AS hold
        FROM numbered WHERE verdict = 'Hold' OR NOT is_nameless
        """,
        decisions=decisions,
    )


def holds(decisions: DataFrame) -> DataFrame:
    """`s_hold_interval`: each hold and day by what it waited for; the shares of a hold sum to its length.

    At every instant the tasks that blocked share it equally; those that the line does not name have one row together.
    `sole_s` is the part in which the task was the only one, `stuck_s` that in which the copies came no nearer.
    `critical` is the task furthest behind at the last look of the day that named any.
    """
    return query(
        f"""
        WITH looks AS (
            SELECT *, unix_micros(t_end) - unix_micros(t_start) AS micros,
                greatest(coalesce(blocking_count, 0L), coalesce(size(blocking), 0)) AS count,
                max(CASE WHEN size(blocking) > 0 THEN t_start END) OVER (
                    PARTITION BY cluster, namespace, app, uid, hold, dt) AS last_named
            FROM {{named}}),
        split AS (
            SELECT *, explode(array(
                struct(reason AS why, count AS by, least(micros, {LONGEST_LOOK}000000) AS part),
                struct('Unrecorded' AS why, 0L AS by, greatest(micros - {LONGEST_LOOK}000000, 0L) AS part))) AS told
            FROM looks),
        blamed AS (
            SELECT *, posexplode_outer(CASE WHEN told.by > 0 THEN concat(
                transform(blocking, b -> struct(b.task AS task, b.ordinal AS ordinal, 1D / told.by AS weight)),
                CASE WHEN told.by > size(blocking) THEN array(struct(cast(NULL AS string) AS task,
                    cast(NULL AS bigint) AS ordinal, 1D - size(blocking) / told.by AS weight)) ELSE array() END)
                END) AS (nth, blocker) FROM split WHERE told.part > 0),
        shares AS (
            SELECT cluster, namespace, app, uid, hold, dt, told.why AS reason, blocker.task AS task,
                blocker.ordinal AS ordinal, min(t_start) AS t_start, max(t_end) AS t_end,
                sum(told.part * coalesce(blocker.weight, 1D) / 1e6D) AS share_s,
                sum(CASE WHEN told.by = 1 AND blocker.task IS NOT NULL THEN told.part ELSE 0L END) / 1e6D AS sole_s,
                sum(CASE WHEN eta_kind IS NOT NULL THEN CASE WHEN eta_kind = 'NEVER' AND told.why <> 'Unrecorded'
                    THEN told.part * coalesce(blocker.weight, 1D) / 1e6D ELSE 0D END END) AS stuck_s,
                coalesce(bool_or(nth = 0 AND t_start = last_named), false) AS critical
            FROM blamed GROUP BY cluster, namespace, app, uid, hold, dt, told.why, blocker.task, blocker.ordinal),
        lengths AS (SELECT cluster, namespace, app, uid, hold, dt, sum(micros) / 1e6D AS hold_s FROM looks GROUP BY ALL)
        SELECT *, hold AS hold_id FROM shares JOIN lengths USING (cluster, namespace, app, uid, hold, dt)
        """,  # noqa: S608 - only our own numbers are put in
        named=_named(decisions),
    )


def losses(marks: DataFrame, decisions: DataFrame) -> DataFrame:
    """Lines that recorders lost, with each application that a recorder decided for on that day."""
    return query(
        """
        SELECT d.cluster, d.namespace, d.app, d.uid, m.ts, m.dropped, m.dt
        FROM {marks} m JOIN (SELECT DISTINCT cluster, namespace, app, uid, recorder, dt FROM {decisions}) d
            ON m.cluster = d.cluster AND m.recorder = d.recorder AND m.dt = d.dt
        WHERE m.mark = 'DROPPED'
        """,
        marks=marks,
        decisions=decisions,
    )


def events(scales: DataFrame) -> DataFrame:
    """Changes of the desired replicas; what a recorder repeats of another one is no change.

    The line's own `old_replicas` counts where it differs from the last number: a line between them was lost.
    """
    return query(
        """
        WITH lined AS (
            SELECT *, CASE WHEN recorder <> lag(recorder) OVER w AND new_replicas = lag(new_replicas) OVER w
                THEN new_replicas ELSE coalesce(old_replicas, lag(new_replicas) OVER w) END AS from_replicas,
                coalesce(lag(new_replicas) OVER w <> old_replicas, false) AS has_jumped
            FROM {scales} WINDOW w AS (PARTITION BY cluster, namespace, app, uid ORDER BY ts, recorder, seq)),
        changes AS (SELECT * FROM lined WHERE from_replicas <> new_replicas)
        SELECT cluster, namespace, app, uid, dt, concat(recorder, '/', seq) AS event_id, ts AS t_event, actor,
            from_replicas, new_replicas AS to_replicas, has_jumped,
            CASE WHEN new_replicas > from_replicas THEN 'up' ELSE 'down' END AS direction,
            lead(ts) OVER w AS t_next, lead(new_replicas) OVER w AS next_replicas
        FROM changes WINDOW w AS (PARTITION BY cluster, namespace, app, uid ORDER BY ts, recorder, seq)
        """,
        scales=scales,
    )


def by_day(events: DataFrame, end: str) -> DataFrame:
    """Events once for each day (`on_day`) that they reach into, so that they meet the lines of these days only."""
    daily = events.withColumn("on_day", F.explode(F.sequence(F.to_date("t_event"), F.to_date(end))))
    return daily.withColumn("on_day", F.date_format("on_day", "yyyy-MM-dd"))


def _decided(spans: DataFrame, decisions: DataFrame) -> DataFrame:
    """When each event was first seen converged, granted, and gone."""
    return query(
        """
        SELECT /*+ BROADCAST(e) */ e.event_id, e.cluster,
            min(CASE WHEN d.converged AND d.desired = e.to_replicas AND d.granted = e.to_replicas THEN d.ts END)
                AS t_conv,
            min(CASE WHEN e.direction = 'up' AND d.granted >= e.to_replicas
                OR e.direction = 'down' AND d.granted <= e.to_replicas THEN d.ts END) AS t_granted,
            min(CASE WHEN e.direction = 'down' AND d.actual <= e.to_replicas THEN d.ts END) AS t_gone
        FROM {decisions} d JOIN {spans} e
            ON d.cluster = e.cluster AND d.namespace = e.namespace AND d.app = e.app AND d.uid = e.uid
            AND d.dt = e.on_day AND d.ts > e.t_event AND d.ts <= e.t_stop
        GROUP BY e.event_id, e.cluster
        """,
        spans=by_day(spans, "t_stop"),
        decisions=decisions,
    )


def bounded(events: DataFrame, seen: DataFrame, decisions: DataFrame) -> DataFrame:
    """Events with `t_conv` (null: not seen), `t_end`, and the times at which replicas were granted and gone.

    An event is looked at until the next one, for a day, or until the last line of its application on its day and the
    next, whichever is first.
    """
    spans = query(
        f"""
        WITH ends AS (
            SELECT e.event_id, e.cluster, max(s.t_last) AS t_last
            FROM {{events}} e JOIN {{seen}} s
                ON e.cluster = s.cluster AND e.namespace = s.namespace AND e.app = s.app AND e.uid = s.uid
                AND to_date(s.dt) BETWEEN to_date(e.t_event) AND date_add(e.t_event, 1)
            GROUP BY e.event_id, e.cluster)
        SELECT e.*, least(t_next, t_last, t_event + INTERVAL {LONGEST_EPISODE_HOURS} HOURS) AS t_stop
        FROM {{events}} e JOIN ends USING (event_id, cluster)
        """,  # noqa: S608 - only our own numbers are put in
        events=events,
        seen=seen,
    )
    return query(
        """
        SELECT e.*, t_conv, t_granted, t_gone, coalesce(t_conv, t_stop) AS t_end,
            CASE WHEN t_conv IS NOT NULL THEN 'converged' WHEN t_next IS NULL OR t_stop < t_next THEN 'open'
                WHEN next_replicas = from_replicas THEN 'cancelled' ELSE 'superseded' END AS outcome
        FROM {spans} e LEFT JOIN {told} USING (event_id, cluster)
        """,
        spans=spans,
        told=_decided(spans, decisions),
    )
