"""Silver from the samples of copies, each day for itself: who is behind, and the samples of whoever was."""

from pyspark.sql import DataFrame

from streamapp.analytics.querying import query


def config(lines: DataFrame) -> DataFrame:
    """`s_config`: what an application goes by, from one change to the next; a repetition is no change."""
    return query(
        """
        WITH told AS (
            SELECT *, to_json(struct(
                application_id, image, tasks, stateful_tasks, threads, acceptable_recovery_lag, learner_source,
                standby_replicas, stabilization_seconds, timeout_seconds, scale_down_policy, settle_seconds, paused,
                dry_run)) AS said
            FROM {lines}),
        marked AS (
            SELECT *, lag(said) OVER (PARTITION BY cluster, namespace, app, uid ORDER BY ts, recorder, seq) AS before
            FROM told)
        SELECT *, ts AS valid_from,
            lead(ts) OVER (PARTITION BY cluster, namespace, app, uid ORDER BY ts, recorder, seq) AS valid_to
        FROM marked WHERE before IS NULL OR before <> said
        """,
        lines=lines,
    )


def limits(config: DataFrame) -> DataFrame:
    """The `acceptable.recovery.lag` in force at any time; the first that is known holds for the time before too."""
    return query(
        """
        SELECT cluster, namespace, app, uid, acceptable_recovery_lag AS lag_limit, valid_to,
            CASE WHEN row_number() OVER (PARTITION BY cluster, namespace, app, uid ORDER BY valid_from) > 1
                THEN valid_from END AS valid_from
        FROM {config}
        """,
        config=config,
    )


def seen(lines: DataFrame) -> DataFrame:
    """`s_seen`: the first and last line of each application and day, from the lines of all kinds."""
    return query(
        """
        SELECT cluster, namespace, app, uid, dt, min(ts) AS t_first, max(ts) AS t_last, count(*) AS lines
        FROM {lines} WHERE app <> '' GROUP BY cluster, namespace, app, uid, dt
        """,
        lines=lines,
    )


def judged(samples: DataFrame, limits: DataFrame) -> DataFrame:
    """Samples with `lag` (slots; of a running active 0, else null where it is not known) and `lag_limit`."""
    return query(
        """
        SELECT /*+ BROADCAST(l) */ s.*, l.lag_limit,
            CASE WHEN role = 'ACTIVE' AND state = 'RUNNING' THEN 0L ELSE greatest(end_offset - offset, 0L) * known END
                AS lag
        FROM (SELECT *, CASE WHEN offset IS NOT NULL AND end_offset IS NOT NULL THEN 1L END AS known FROM {samples}) s
        LEFT JOIN {limits} l
            ON s.cluster = l.cluster AND s.namespace = l.namespace AND s.app = l.app AND s.uid = l.uid
            AND (l.valid_from IS NULL OR s.ts >= l.valid_from) AND (l.valid_to IS NULL OR s.ts < l.valid_to)
        """,
        samples=samples,
        limits=limits,
    )


def behind(judged: DataFrame) -> DataFrame:
    """`s_behind`: samples further behind than a tenth of the limit; where no limit is known, than nothing."""
    return query("SELECT * FROM {judged} WHERE lag > 0.1 * coalesce(lag_limit, 0)", judged=judged)


def learner_samples(judged: DataFrame) -> DataFrame:
    """`s_learner_sample`: a day's samples of copies that were behind or restoring, the first and last of others."""
    copies = query(
        """
        SELECT cluster, namespace, app, uid, task, ordinal, process_id, dt, min(ts) AS first, max(ts) AS last,
            coalesce(bool_or(lag > coalesce(lag_limit, 0)), false) OR coalesce(bool_or(state = 'RESTORING'), false)
                AS learns
        FROM {judged} GROUP BY cluster, namespace, app, uid, task, ordinal, process_id, dt
        """,
        judged=judged,
    )
    return query(
        """
        SELECT /*+ BROADCAST(c) */ j.*
        FROM {judged} j JOIN {copies} c
            ON j.cluster = c.cluster AND j.namespace = c.namespace AND j.app = c.app AND j.uid = c.uid
            AND j.task = c.task AND j.ordinal = c.ordinal AND j.process_id = c.process_id AND j.dt = c.dt
        WHERE c.learns OR j.ts = c.first OR j.ts = c.last
        """,
        judged=judged,
        copies=copies,
    )
