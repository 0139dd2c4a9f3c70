"""Silver about copies that catch up: each time one did, and how long tasks did not run."""

from pyspark.sql import DataFrame

from streamapp.analytics.spark.sql import query


def _runs(samples: DataFrame) -> DataFrame:
    """Samples that belong to a time behind, with its number `run`: the ones behind, and the one that ended it.

    A run is broken where a copy was not seen for five minutes, or five times as long as was to be expected; another one
    begins where its offset falls: it lost what it had, and starts anew.
    """
    return query(
        """
        WITH told AS (
            SELECT *, lag > coalesce(lag_limit, 0) AS behind, role = 'ACTIVE' AND state = 'RUNNING' AS runs
            FROM {samples} WHERE lag IS NOT NULL),
        lined AS (
            SELECT *, coalesce(offset < lag(offset) OVER w, false) AS anew,
                coalesce(lag(behind) OVER w, false) AS was_behind,
                coalesce(unix_micros(ts) - unix_micros(lag(ts) OVER w)
                    > 1000000 * greatest(300, 5 * lag(interval_seconds) OVER w), true) AS broken,
                (unix_micros(lead(ts) OVER w) - unix_micros(ts)) / 1e6D AS pause
            FROM told
            WINDOW w AS (PARTITION BY cluster, namespace, app, uid, task, ordinal, process_id ORDER BY ts, seq)),
        numbered AS (
            SELECT *, sum(CASE WHEN behind AND (NOT was_behind OR broken OR anew) THEN 1 ELSE 0 END) OVER (
                PARTITION BY cluster, namespace, app, uid, task, ordinal, process_id ORDER BY ts, seq) AS run
            FROM lined)
        SELECT *, CASE WHEN behind AND source = 'AGENT' AND pause <= greatest(300, 5 * interval_seconds)
            THEN greatest(1, floor(pause / greatest(interval_seconds, 1e-3D))) END AS expected
        FROM numbered WHERE behind OR (was_behind AND NOT broken)
        """,
        samples=samples,
    )


def _measured(runs: DataFrame) -> DataFrame:
    """One row for each run, with what was restored while it was behind, and in which time."""
    return query(
        """
        WITH firsts AS (
            SELECT cluster, namespace, app, uid, task, ordinal, process_id, run,
                min(ts) AS t_start, max(ts) AS t_end, max(CASE WHEN NOT behind THEN ts END) AS t_caught_up,
                max(CASE WHEN behind THEN ts END) AS t_behind,
                coalesce(bool_or(NOT behind AND runs), false) AS promoted,
                count_if(behind) AS samples, max(interval_seconds) AS interval_seconds,
                count(expected) / sum(expected) AS completeness,
                min_by(struct(role, lag, offset, end_offset), struct(ts, seq)) AS first,
                max_by(CASE WHEN behind THEN struct(offset, end_offset) END, CASE WHEN behind THEN struct(ts, seq) END)
                    AS last
            FROM {runs} GROUP BY cluster, namespace, app, uid, task, ordinal, process_id, run)
        SELECT *, (unix_micros(t_behind) - unix_micros(t_start)) / 1e6D AS spent,
            last.offset - first.offset AS restored, last.end_offset - first.end_offset AS appended
        FROM firsts
        """,
        runs=runs,
    )


def _followed(samples: DataFrame, seen: DataFrame) -> DataFrame:
    """Times behind with the last sight, on the day of their end and the next, of their process and application."""
    return query(
        """
        WITH processes AS (
            SELECT cluster, namespace, app, uid, process_id, to_date(dt) AS day, max(ts) AS t_last
            FROM {samples} GROUP BY cluster, namespace, app, uid, process_id, dt),
        followed AS (
            SELECT *, greatest(t_last, CASE WHEN lead(day) OVER w = date_add(day, 1) THEN lead(t_last) OVER w END)
                AS process_last
            FROM processes WINDOW w AS (PARTITION BY cluster, namespace, app, uid, process_id ORDER BY day)),
        days AS (
            SELECT cluster, namespace, app, uid, to_date(dt) AS day, greatest(
                t_last, CASE WHEN lead(to_date(dt)) OVER w = date_add(to_date(dt), 1) THEN lead(t_last) OVER w END)
                AS app_last
            FROM {seen} WINDOW w AS (PARTITION BY cluster, namespace, app, uid ORDER BY dt))
        SELECT m.*, p.process_last, a.app_last
        FROM {measured} m
        LEFT JOIN followed p ON m.cluster = p.cluster AND m.namespace = p.namespace AND m.app = p.app AND m.uid = p.uid
            AND m.process_id = p.process_id AND to_date(m.t_end) = p.day
        LEFT JOIN days a ON m.cluster = a.cluster AND m.namespace = a.namespace AND m.app = a.app AND m.uid = a.uid
            AND to_date(m.t_end) = a.day
        """,
        samples=samples,
        measured=_measured(_runs(samples)),
        seen=seen,
    )


def stints(samples: DataFrame, seen: DataFrame) -> DataFrame:
    """`s_learner_stint`: each time that a copy was behind, from `s_learner_sample`.

    Its grade counts, of the samples that were to be expected of agents after each that was behind, those that came;
    it is null where none was: members report positions only when they join.
    What became of one that did not catch up shows on the same day and the next: its process was seen later
    (`dropped`), only the application was (`lost`), or neither was for long enough to tell (`open`).
    """
    return query(
        """
        WITH rated AS (
            SELECT *, CASE WHEN is_rated THEN restored / spent END AS gross_rate,
                CASE WHEN is_rated THEN appended / spent END AS append_rate
            FROM (SELECT *, samples >= 3 AND spent > 0 AND completeness IS NOT NULL AS is_rated FROM {found}))
        SELECT *, first.role AS role, first.lag AS lag_start, gross_rate - append_rate AS net_rate,
            CASE WHEN promoted THEN 'promoted' WHEN t_caught_up IS NOT NULL THEN 'caught_up'
                WHEN process_last > t_end THEN 'dropped'
                WHEN unix_micros(app_last) - unix_micros(t_end) > 1000000 * greatest(300, 5 * interval_seconds)
                    THEN 'lost'
                ELSE 'open' END AS end_reason,
            CASE WHEN completeness >= 0.95 THEN 'A' WHEN completeness >= 0.8 THEN 'B' WHEN completeness >= 0.5 THEN 'C'
                WHEN completeness IS NOT NULL THEN 'D' END AS grade,
            date_format(t_start, 'yyyy-MM-dd') AS dt
        FROM rated
        """,
        found=_followed(samples, seen),
    )


def _since(gaps: DataFrame, led: DataFrame) -> DataFrame:
    """Gaps with `since`, `until` and `surely`, the seconds they took at least.

    Gaps that began before their recorder count from the last look of the former one.

    A gap that ended before that look, or that no former recorder can bound, is none.
    """
    return query(
        """
        WITH told AS (
            SELECT g.*, coalesce(began_before, false) AS begun, h.t_before,
                CASE WHEN began_before THEN coalesce(started_at, ts) ELSE ts END AS until
            FROM {gaps} g LEFT JOIN {led} h
                ON g.cluster = h.cluster AND g.namespace = h.namespace AND g.app = h.app AND g.uid = h.uid
                AND g.recorder = h.recorder)
        SELECT *, CASE WHEN begun THEN t_before ELSE last_ran_at END AS since,
            CASE WHEN begun THEN (unix_micros(until) - unix_micros(greatest(last_ran_at, t_before))) / 1e6D
                ELSE stood_seconds END AS surely
        FROM told WHERE NOT begun OR (t_before < until AND ts - last_ran_at <= INTERVAL 24 HOURS)
        """,
        gaps=gaps,
        led=led,
    )


def downtime(samples: DataFrame, closed: DataFrame, gaps: DataFrame, led: DataFrame) -> DataFrame:
    """`s_downtime`: the worst gap of closed steps, that of each task that ran again, and times of restoring.

    A gap took `downtime_s` at most, and at least `err_s` less. Times of restoring are of one day each, as far as
    samples show: one that lasts over midnight is two.
    """
    return query(
        """
        WITH states AS (
            SELECT *, state = 'RESTORING' AS stands, coalesce(lag(state = 'RESTORING') OVER w, false) AS stood
            FROM {samples} WHERE role = 'ACTIVE' AND state IS NOT NULL
            WINDOW w AS (PARTITION BY cluster, namespace, app, uid, task, dt ORDER BY ts, seq, ordinal)),
        numbered AS (
            SELECT *, sum(CASE WHEN stands AND NOT stood THEN 1 ELSE 0 END) OVER (
                PARTITION BY cluster, namespace, app, uid, task, dt ORDER BY ts, seq, ordinal) AS run
            FROM states),
        stops AS (
            SELECT cluster, namespace, app, uid, dt, task, run, min(ts) AS t_stop,
                max(CASE WHEN NOT stands THEN ts END) AS t_resume, max(ts) AS t_last, max(interval_seconds) AS err_s
            FROM numbered WHERE stands OR stood GROUP BY cluster, namespace, app, uid, dt, task, run)
        SELECT cluster, namespace, app, uid, task, 'sample' AS source, cast(NULL AS string) AS hold_id, t_stop,
            t_resume,
            (unix_micros(t_last) - unix_micros(t_stop)) / 1e6D AS downtime_s, err_s, dt
        FROM stops
        UNION ALL
        SELECT cluster, namespace, app, uid, NULL, 'step', hold_id, granted_at, ts, worst_gap_seconds,
            gap_error_seconds, dt
        FROM {closed} WHERE worst_gap_seconds IS NOT NULL
        UNION ALL
        SELECT cluster, namespace, app, uid, task, 'gap', NULL, if(exact IS NULL, since, stopped_at),
            if(exact IS NULL, until, started_at), coalesce(exact, most),
            if(exact IS NULL, most - least(surely, most), 0D), dt
        FROM (SELECT *, greatest(unix_micros(until) - unix_micros(since), 0L) / 1e6D AS most,
            if(started_at IS NULL OR stopped_at IS NULL, NULL, -- `greatest` takes the 0 where a time is missing
                greatest(unix_micros(started_at) - unix_micros(stopped_at), 0L) / 1e6D) AS exact FROM {since})
        """,
        samples=samples,
        closed=closed,
        since=_since(gaps, led),
    )
