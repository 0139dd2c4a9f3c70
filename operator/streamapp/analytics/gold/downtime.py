"""Gold about downtime: for how long tasks did not run, by day and by cause."""

from pyspark.sql import DataFrame

from streamapp.analytics.spark.sql import query


def _sums(outages: DataFrame) -> DataFrame:
    """Task-seconds by application and day; an outage over midnight is shared out by time."""
    return query(
        """
        WITH pieces AS (
            SELECT *, explode(sequence(to_date(t_stop), to_date(t_end))) AS day,
                greatest(unix_micros(t_end) - unix_micros(t_stop), 1L) AS whole
            FROM {outages}),
        parts AS (
            SELECT *, date_format(day, 'yyyy-MM-dd') AS on_day, CASE WHEN t_end = t_stop THEN 1D ELSE greatest(0L,
                unix_micros(least(t_end, timestamp(date_add(day, 1)))) - unix_micros(greatest(t_stop, timestamp(day))))
                / whole END AS share
            FROM pieces),
        by_cause AS (
            SELECT cluster, namespace, app, uid, on_day AS dt, cause, sum(at_most_s * share) AS most,
                sum(at_least_s * share) AS least, count_if(begins AND day = to_date(t_stop)) AS n,
                count_if(is_open) AS open, max(struct(at_most_s, task)) AS worst
            FROM parts WHERE share > 0 GROUP BY cluster, namespace, app, uid, on_day, cause)
        SELECT cluster, namespace, app, uid, dt, sum(n) AS n, sum(least) AS at_least_s, sum(most) AS at_most_s,
            map_from_entries(array_sort(collect_list(struct(cause, most)))) AS by_cause, max(worst) AS worst,
            sum(open) AS open
        FROM by_cause GROUP BY cluster, namespace, app, uid, dt
        """,
        outages=outages,
    )


def downtime_daily(outages: DataFrame, seen: DataFrame, config: DataFrame) -> DataFrame:
    """`g_downtime_daily`: task-seconds without processing, at least and at most; one row a day, also without any.

    `task_s` is the number of tasks times the watched seconds of the day; null while the tasks are unknown.
    `availability` is the objective in force at the end of the day; null if the record does not tell it.
    """
    return query(
        """
        WITH sizes AS (
            SELECT s.cluster, s.namespace, s.app, s.uid, s.dt,
                max_by(c.tasks, c.valid_from) FILTER (WHERE c.tasks IS NOT NULL) AS tasks,
                max_by(c.availability, c.valid_from) FILTER (WHERE c.availability IS NOT NULL) AS availability
            FROM {seen} s JOIN {config} c
                ON s.cluster = c.cluster AND s.namespace = c.namespace AND s.app = c.app AND s.uid = c.uid
                AND c.valid_from <= s.t_last
            GROUP BY s.cluster, s.namespace, s.app, s.uid, s.dt)
        SELECT cluster, namespace, app, uid, dt, tasks, availability,
            tasks * watched_s AS task_s, coalesce(n, 0L) AS n,
            coalesce(at_least_s, 0D) AS at_least_s, coalesce(at_most_s, 0D) AS at_most_s,
            coalesce(by_cause, map_from_entries(cast(array() AS array<struct<cause:string,most:double>>))) AS by_cause,
            worst.at_most_s AS worst_s, worst.task AS worst_task, coalesce(open, 0L) AS open
        FROM {seen} LEFT JOIN {sums} USING (cluster, namespace, app, uid, dt)
        LEFT JOIN sizes USING (cluster, namespace, app, uid, dt)
        """,
        sums=_sums(outages),
        seen=seen,
        config=config,
    )
