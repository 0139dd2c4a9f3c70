"""Silver from the configuration, and from the samples of copies: each day by itself."""

from pyspark.sql import DataFrame

from streamapp.analytics.spark.sql import query

OF_CLIENTS = ("heartbeat_seconds", "session_timeout_seconds", "leaves_on_close", "is_static", "streams_versions")
"""What agents tell of the clients in the pods."""
CARRIED = (
    *("tasks", "stateful_tasks", "learner_source", "standby_replicas", "application_recovery_lag", "availability"),
    *OF_CLIENTS,
)
"""Settings that a recorder learns only after its start: while it leaves one out, the last known value is in force."""

UNWATCHED = 600
"""Seconds without a line of an application from which on it was not watched: the operator writes one in half of it."""


def config(lines: DataFrame) -> DataFrame:
    """`s_config`: what an application goes by, from one change to the next; a repetition is no change."""
    window = "PARTITION BY cluster, namespace, app, uid ORDER BY ts, recorder, seq"
    lists = ("stateful_tasks", "streams_versions")
    told = {name: f"CASE WHEN size({name}) > 0 THEN {name} END" for name in lists}
    told["learner_source"] = "nullif(learner_source, '')"
    known = ", ".join(f"last({told.get(name, name)}, true) OVER ({window}) AS {name}" for name in CARRIED)
    return query(
        f"""
        WITH carried AS (SELECT * EXCEPT ({", ".join(CARRIED)}), {known} FROM {{lines}}),
        limited AS (
            SELECT *, least(acceptable_recovery_lag, application_recovery_lag) AS lag_limit FROM carried),
        told AS (
            SELECT *, to_json(struct(
                application_id, image, tasks, stateful_tasks, lag_limit, learner_source,
                standby_replicas, stabilization_seconds, timeout_seconds, scale_down_policy, availability,
                paused, dry_run, {", ".join(OF_CLIENTS)})) AS said
            FROM limited),
        marked AS (SELECT *, lag(said) OVER ({window}) AS before FROM told)
        SELECT *, ts AS valid_from, lead(ts) OVER ({window}) AS valid_to
        FROM marked WHERE before IS NULL OR before <> said
        """,  # noqa: S608 - only our own names are put in
        lines=lines,
    )


def limits(config: DataFrame) -> DataFrame:
    """The `acceptable.recovery.lag` in force at any time; the first that is known holds for the time before too."""
    return query(
        """
        SELECT cluster, namespace, app, uid, lag_limit, valid_to,
            CASE WHEN row_number() OVER (PARTITION BY cluster, namespace, app, uid ORDER BY valid_from) > 1
                THEN valid_from END AS valid_from
        FROM {config}
        """,
        config=config,
    )


def lagged(samples: DataFrame) -> DataFrame:
    """Samples with `lag` in slots: of a running active 0, else null where it is not known."""
    return query(
        """
        SELECT *, CASE WHEN role = 'ACTIVE' AND state = 'RUNNING' THEN 0L
            WHEN offset IS NOT NULL AND end_offset IS NOT NULL THEN greatest(end_offset - offset, 0L) END AS lag
        FROM {samples}
        """,
        samples=samples,
    )


def judged(samples: DataFrame, limits: DataFrame) -> DataFrame:
    """Samples with `lag` and the `lag_limit` in force."""
    return query(
        """
        SELECT /*+ BROADCAST(l) */ s.*, l.lag_limit
        FROM {lagged} s
        LEFT JOIN {limits} l
            ON s.cluster = l.cluster AND s.namespace = l.namespace AND s.app = l.app AND s.uid = l.uid
            AND (l.valid_from IS NULL OR s.ts >= l.valid_from) AND (l.valid_to IS NULL OR s.ts < l.valid_to)
        """,
        lagged=lagged(samples),
        limits=limits,
    )


def copies(judged: DataFrame) -> DataFrame:
    """Each copy on each day: its first and last sample, how many, and whether it had to learn."""
    return query(
        """
        SELECT cluster, namespace, app, uid, task, ordinal, process_id, dt, min(ts) AS first, max(ts) AS last,
            count(*) AS lines, coalesce(bool_or(lag > coalesce(lag_limit, 0)), false)
                OR coalesce(bool_or(state = 'RESTORING'), false) AS learns
        FROM {judged} GROUP BY cluster, namespace, app, uid, task, ordinal, process_id, dt
        """,
        judged=judged,
    )


def seen(samples: DataFrame, lines: DataFrame) -> DataFrame:
    """`s_seen`: the first and last line of each application and day, and the `spans` in which it was watched.

    A span ends where no line of the application comes for `UNWATCHED` seconds: what happened then is not known.
    """
    return query(
        f"""
        WITH every AS (
            SELECT cluster, namespace, app, uid, dt, min(ts) AS first, max(ts) AS last, count(*) AS lines
            FROM {{samples}} GROUP BY cluster, namespace, app, uid, dt, floor(unix_micros(ts) / 300e6)
            UNION ALL SELECT cluster, namespace, app, uid, dt, ts, ts, 1L FROM {{lines}}),
        lined AS (
            SELECT *, max(last) OVER (PARTITION BY cluster, namespace, app, uid, dt ORDER BY first, last
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
            FROM every WHERE app <> ''),
        numbered AS (
            SELECT *, count_if(before IS NULL OR first - before > INTERVAL {UNWATCHED} SECONDS) OVER (
                PARTITION BY cluster, namespace, app, uid, dt ORDER BY first, last
                ROWS UNBOUNDED PRECEDING) AS span
            FROM lined),
        spans AS (
            SELECT cluster, namespace, app, uid, dt, min(first) AS t_first, max(last) AS t_last, sum(lines) AS lines
            FROM numbered GROUP BY cluster, namespace, app, uid, dt, span)
        SELECT cluster, namespace, app, uid, dt, min(t_first) AS t_first, max(t_last) AS t_last, sum(lines) AS lines,
            sum(unix_micros(t_last) - unix_micros(t_first)) / 1e6D AS watched_s,
            array_sort(collect_list(struct(t_first, t_last))) AS spans
        FROM spans GROUP BY cluster, namespace, app, uid, dt
        """,  # noqa: S608 - only our own numbers are put in
        samples=samples,
        lines=lines,
    )


def learner_samples(samples: DataFrame, copies: DataFrame) -> DataFrame:
    """`s_learner_sample`: a day's samples of copies that were behind or restoring, the first and last of others."""
    return query(
        """
        SELECT s.*
        FROM {samples} s JOIN {copies} c
            ON s.cluster = c.cluster AND s.namespace = c.namespace AND s.app = c.app AND s.uid = c.uid
            AND s.task = c.task AND s.ordinal = c.ordinal AND s.process_id = c.process_id AND s.dt = c.dt
        WHERE c.learns OR s.ts = c.first OR s.ts = c.last
        """,
        samples=samples,
        copies=copies,
    )
