"""Silver about times in which a task did not run, each with the cause that the record shows."""

from pyspark.sql import DataFrame

from streamapp.analytics.spark.sql import query

CAUSES = ("crash", "rollout", "scale", "eviction", "rebalance")
"""In this order where the record shows several; without any the cause is `unknown`."""
NEAR_SECONDS = 30
"""By which the change of a pod or layout can be seen before the task was seen to stop, or after it ran again."""
OPEN_SECONDS = 600
"""A task seen restoring this short before the application's last line was not seen to run again."""


def pod_changes(pods: DataFrame) -> DataFrame:
    """Pods that replaced another one, and containers that started anew: `t_start`, `cause`."""
    return query(
        """
        WITH lined AS (
            SELECT *, lag(pod_uid) OVER w AS old_uid, lag(revision) OVER w AS old_revision,
                lag(container_id) OVER w AS old_container, lag(t_end) OVER w AS old_end
            FROM {pods} WINDOW w AS (PARTITION BY cluster, namespace, app, uid, ordinal ORDER BY t_start)),
        told AS (
            SELECT *, CASE
                WHEN old_uid = pod_uid AND nullif(old_container, '') <> nullif(container_id, '') THEN 'crash'
                WHEN old_uid <> pod_uid AND nullif(old_revision, '') <> nullif(revision, '') THEN 'rollout'
                WHEN old_uid <> pod_uid THEN 'eviction' END AS cause
            FROM lined WHERE old_end = t_start)
        SELECT cluster, namespace, app, uid, t_start, cause FROM told WHERE cause IS NOT NULL
        """,
        pods=pods,
    )


def causes(changes: DataFrame, episodes: DataFrame, rebalances: DataFrame) -> DataFrame:
    """What can stop a task: from `began` to `ended`, with the place of its cause among `CAUSES`."""
    place = " ".join(f"WHEN '{cause}' THEN {number}" for number, cause in enumerate(CAUSES))
    return query(
        f"""
        WITH every AS (
            SELECT cluster, namespace, app, uid, t_start AS began, t_start AS ended, cause FROM {{changes}}
            UNION ALL SELECT cluster, namespace, app, uid, t_event, t_end, 'scale' FROM {{episodes}}
            UNION ALL SELECT cluster, namespace, app, uid, ts, ts, 'rebalance' FROM {{rebalances}})
        SELECT *, CASE cause {place} END AS place FROM every
        """,  # noqa: S608 - only our own words are put in
        changes=changes,
        episodes=episodes,
        rebalances=rebalances,
    )


def _restoring(told: DataFrame) -> DataFrame:
    """Times seen restoring, which are of one day each: those that meet at midnight reach up to it."""
    return query(
        f"""
        WITH lined AS (
            SELECT *, lag(t_end) OVER w AS old_end, lag(t_resume) OVER w AS old_resume, lag(dt) OVER w AS old_dt,
                lead(t_stop) OVER w AS new_stop, lead(dt) OVER w AS new_dt
            FROM {{told}} WHERE source = 'sample'
            WINDOW w AS (PARTITION BY cluster, namespace, app, uid, task ORDER BY t_stop)),
        met AS (
            SELECT *, coalesce(old_resume IS NULL AND to_date(old_dt) = date_sub(to_date(dt), 1)
                    AND t_stop - old_end <= INTERVAL {OPEN_SECONDS} SECONDS, false) AS goes_back,
                coalesce(t_resume IS NULL AND to_date(new_dt) = date_add(to_date(dt), 1)
                    AND new_stop - t_end <= INTERVAL {OPEN_SECONDS} SECONDS, false) AS goes_on
            FROM lined)
        SELECT cluster, namespace, app, uid, task, source, t_resume, dt, goes_on, NOT goes_back AS begins,
            CASE WHEN goes_on THEN 0D ELSE err_s END AS err_s,
            CASE WHEN goes_back THEN timestamp(to_date(dt)) ELSE t_stop END AS t_stop,
            CASE WHEN goes_on THEN timestamp(date_add(to_date(dt), 1)) ELSE t_end END AS t_end
        FROM met
        """,  # noqa: S608 - only our own numbers are put in
        told=told,
    )


def _each(downtime: DataFrame) -> DataFrame:
    """Each time once: gaps, and times seen restoring that no gap of the task covers."""
    told = query(
        """
        SELECT *, coalesce(t_resume, timestamp_micros(unix_micros(t_stop) + cast(downtime_s * 1e6 AS bigint))) AS t_end
        FROM {downtime} WHERE source IN ('gap', 'sample')
        """,
        downtime=downtime,
    )
    return query(
        """
        WITH gaps AS (SELECT * FROM {told} WHERE source = 'gap')
        SELECT s.cluster, s.namespace, s.app, s.uid, s.task, s.source, s.t_resume, s.dt, s.goes_on, s.begins, s.err_s,
            s.t_stop, s.t_end, (unix_micros(s.t_end) - unix_micros(s.t_stop)) / 1e6D AS downtime_s
        FROM {restoring} s LEFT ANTI JOIN gaps g
            ON s.cluster = g.cluster AND s.namespace = g.namespace AND s.app = g.app AND s.uid = g.uid
            AND s.task = g.task AND s.t_stop <= g.t_end AND s.t_end >= g.t_stop
        UNION ALL SELECT cluster, namespace, app, uid, task, source, t_resume, dt, false, true, err_s, t_stop, t_end,
            downtime_s
        FROM gaps
        """,
        told=told,
        restoring=_restoring(told),
    )


def _stops(downtime: DataFrame, seen: DataFrame) -> DataFrame:
    """Each time once, and whether it had not ended when the application was seen last."""
    return query(
        f"""
        WITH days AS (
            SELECT cluster, namespace, app, uid, to_date(dt) AS day, greatest(
                t_last, CASE WHEN lead(to_date(dt)) OVER w = date_add(to_date(dt), 1) THEN lead(t_last) OVER w END)
                AS app_last
            FROM {{seen}} WINDOW w AS (PARTITION BY cluster, namespace, app, uid ORDER BY dt))
        SELECT s.*, s.t_resume IS NULL AND NOT goes_on AND d.app_last - s.t_end <= INTERVAL {OPEN_SECONDS} SECONDS
            AS is_open
        FROM {{each}} s
        LEFT JOIN days d ON s.cluster = d.cluster AND s.namespace = d.namespace AND s.app = d.app AND s.uid = d.uid
            AND to_date(s.t_end) = d.day
        """,  # noqa: S608 - only our own numbers are put in
        each=_each(downtime),
        seen=seen,
    )


def outages(downtime: DataFrame, causes: DataFrame, seen: DataFrame) -> DataFrame:
    """`s_outage`: each time in which a task did not run, at least and at most, by the first cause that met it."""
    names = " ".join(f"WHEN {number} THEN '{cause}'" for number, cause in enumerate(CAUSES))
    return query(
        f"""
        WITH met AS (
            SELECT o.cluster, o.namespace, o.app, o.uid, o.task, o.source, o.t_stop, o.t_end, min(c.place) AS place
            FROM {{stops}} o JOIN {{causes}} c
                ON o.cluster = c.cluster AND o.namespace = c.namespace AND o.app = c.app AND o.uid = c.uid
                AND c.began <= o.t_end + INTERVAL {NEAR_SECONDS} SECONDS
                AND c.ended >= o.t_stop - INTERVAL {NEAR_SECONDS} SECONDS
            GROUP BY o.cluster, o.namespace, o.app, o.uid, o.task, o.source, o.t_stop, o.t_end)
        SELECT cluster, namespace, app, uid, task, source, t_stop, t_end, dt, begins, downtime_s AS at_most_s,
            greatest(downtime_s - coalesce(err_s, 0D), 0D) AS at_least_s, coalesce(is_open, false) AS is_open,
            CASE place {names} ELSE 'unknown' END AS cause
        FROM {{stops}} LEFT JOIN met USING (cluster, namespace, app, uid, task, source, t_stop, t_end)
        """,  # noqa: S608 - only our own numbers and words are put in
        stops=_stops(downtime, seen),
        causes=causes,
    )
