"""Silver about scaling: what held a step and how much of it, and each step with its phases and its end."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamapp.analytics.spark.sql import query

LONGEST_LOOK = 300
"""Seconds after a look during a hold from which on the blocking tasks are unknown: the rest is `Unrecorded`."""
LONGEST_EPISODE_HOURS = 24
"""After that a step counts as not seen to its end."""


def holds(decisions: DataFrame) -> DataFrame:
    """`s_hold_interval`: each hold and day by what it waited for; the shares of a hold sum to its length.

    At every instant the tasks that blocked share it equally. `critical` is the task furthest behind at the last look
    of the day that named any.
    """
    return query(
        f"""
        WITH looks AS (
            SELECT *, unix_micros(t_end) - unix_micros(t_start) AS micros,
                max(CASE WHEN size(blocking) > 0 THEN t_start END) OVER (
                    PARTITION BY cluster, namespace, app, uid, hold_id, dt) AS last_named
            FROM {{decisions}} WHERE coalesce(hold_id, '') <> ''),
        split AS (
            SELECT *, explode(array(
                struct(reason AS why, blocking AS by, least(micros, {LONGEST_LOOK}000000) AS part),
                struct('Unrecorded' AS why, NULL AS by, greatest(micros - {LONGEST_LOOK}000000, 0L) AS part))) AS told
            FROM looks),
        blamed AS (
            SELECT *, told.why AS whose,
                posexplode_outer(CASE WHEN size(told.by) > 0 THEN told.by END) AS (nth, blocker)
            FROM split WHERE told.part > 0),
        shares AS (
            SELECT cluster, namespace, app, uid, hold_id, dt, whose AS reason, blocker.task AS task,
                blocker.ordinal AS ordinal, min(t_start) AS t_start, max(t_end) AS t_end,
                sum(told.part / greatest(size(told.by), 1) / 1e6D) AS share_s,
                coalesce(bool_or(nth = 0 AND t_start = last_named), false) AS critical
            FROM blamed GROUP BY cluster, namespace, app, uid, hold_id, dt, whose, blocker.task, blocker.ordinal),
        lengths AS (
            SELECT cluster, namespace, app, uid, hold_id, dt, sum(micros) / 1e6D AS hold_s
            FROM looks GROUP BY cluster, namespace, app, uid, hold_id, dt)
        SELECT * FROM shares JOIN lengths USING (cluster, namespace, app, uid, hold_id, dt)
        """,  # noqa: S608 - only our own numbers are put in
        decisions=decisions,
    )


def events(scales: DataFrame) -> DataFrame:
    """Changes of the desired replicas; a recorder's first line counts only if it differs from the last number."""
    return query(
        """
        WITH lined AS (
            SELECT *, coalesce(lag(new_replicas) OVER w, old_replicas) AS from_replicas FROM {scales}
            WINDOW w AS (PARTITION BY cluster, namespace, app, uid ORDER BY ts, recorder, seq)),
        changes AS (SELECT * FROM lined WHERE from_replicas <> new_replicas)
        SELECT cluster, namespace, app, uid, dt, concat(recorder, '/', seq) AS event_id, ts AS t_event, actor,
            from_replicas, new_replicas AS to_replicas,
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
