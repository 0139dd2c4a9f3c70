"""Gold by day: skew, churn, the autoscaler."""

from typing import Final

from pyspark.sql import DataFrame

from streamapp.analytics.spark.sql import query

SKEWED: Final = 1.5
"""Tasks of the busiest thread, over those of the best spread, above which an application counts as badly spread."""


def skew_daily(assignments: DataFrame) -> DataFrame:
    """`g_skew_daily`: how unevenly stateful active tasks were spread over processes, weighted by time.

    `imbalance` compares the busiest thread with the best spread that is possible: 6 tasks on 5 threads cannot do better
    than 2 on one of them.
    """
    return query(
        f"""
        WITH loads AS (
            SELECT cluster, namespace, app, uid, dt, t_start, t_end, stateful_active AS n,
                ceil(stateful_active / greatest(threads, 1)) AS load, greatest(threads, 1) AS threads,
                row_number() OVER (PARTITION BY cluster, namespace, app, uid, t_start
                    ORDER BY stateful_active, process_id) AS nth
            FROM {{assignments}}),
        layouts AS (
            SELECT cluster, namespace, app, uid, dt, t_start,
                max(unix_micros(t_end) - unix_micros(t_start)) / 1e6D AS seconds,
                max(n) / sum(n) AS max_share, max(load) / ceil(sum(n) / sum(threads)) AS imbalance,
                2 * sum(nth * n) / (count(*) * sum(n)) - (count(*) + 1) / count(*) AS gini
            FROM loads GROUP BY cluster, namespace, app, uid, dt, t_start HAVING sum(n) > 0)
        SELECT cluster, namespace, app, uid, dt, sum(max_share * seconds) / sum(seconds) AS max_share,
            sum(imbalance * seconds) / sum(seconds) AS imbalance, sum(gini * seconds) / sum(seconds) AS gini,
            sum(seconds) AS seen_s, sum(CASE WHEN imbalance > {SKEWED} THEN seconds ELSE 0D END) AS bad_s
        FROM layouts GROUP BY cluster, namespace, app, uid, dt
        """,  # noqa: S608 - only our own numbers are put in
        assignments=assignments,
    )


def autoscaler_daily(episodes: DataFrame, decisions: DataFrame, autoscalers: DataFrame, seen: DataFrame) -> DataFrame:
    """`g_autoscaler_daily`: events, those that took back the one before within the hour, and replica hours.

    Also the seconds in which an autoscaler could not act, wanted fewer pods than its minimum, or more than its maximum:
    null while no line tells that.
    """
    return query(
        """
        WITH lined AS (
            SELECT *, lag(direction) OVER w AS old_direction, lag(t_event) OVER w AS old_t,
                abs(lag(to_replicas - from_replicas) OVER w) AS old_size, lead(direction) OVER w AS next_direction
            FROM {episodes} WINDOW w AS (PARTITION BY cluster, namespace, app, uid ORDER BY t_event, event_id)),
        told AS (
            SELECT *, old_direction <> direction AND t_event - old_t <= INTERVAL 60 MINUTES AS reverses,
                outcome IN ('superseded', 'cancelled') AND next_direction <> direction AS wasted
            FROM lined),
        counts AS (
            SELECT cluster, namespace, app, uid, dt, count(*) AS events, count_if(reverses) AS reversals,
                count_if(reverses AND abs(to_replicas - from_replicas) >= old_size) AS flap_pairs,
                count_if(wasted) AS wasted_events, sum(CASE WHEN wasted THEN restored END) AS wasted_slots
            FROM told GROUP BY cluster, namespace, app, uid, dt),
        hours AS (
            SELECT cluster, namespace, app, uid, dt,
                sum(actual * (unix_micros(t_end) - unix_micros(t_start))) / 3600e6D AS replica_h,
                sum(greatest(granted - desired, 0L) * (unix_micros(t_end) - unix_micros(t_start))) / 3600e6D
                    AS held_replica_h
            FROM {decisions} GROUP BY cluster, namespace, app, uid, dt)
        SELECT cluster, namespace, app, uid, dt, coalesce(events, 0L) AS events, coalesce(reversals, 0L) AS reversals,
            coalesce(flap_pairs, 0L) AS flap_pairs, coalesce(wasted_events, 0L) AS wasted_events,
            coalesce(wasted_slots, 0L) AS wasted_slots, replica_h, held_replica_h,
            cannot_act_s, below_min_s, above_max_s
        FROM {seen} LEFT JOIN counts USING (cluster, namespace, app, uid, dt)
        LEFT JOIN hours USING (cluster, namespace, app, uid, dt)
        LEFT JOIN {limits} USING (cluster, namespace, app, uid, dt)
        """,
        episodes=episodes,
        decisions=decisions,
        limits=_limits(autoscalers),
        seen=seen,
    )


def _limits(autoscalers: DataFrame) -> DataFrame:
    """The seconds of each day in which an autoscaler could not act, or wanted other replicas than its bounds allow."""
    return query(
        """
        SELECT cluster, namespace, app, uid, dt,
            sum(CASE WHEN cannot_act <> '' THEN seconds WHEN cannot_act = '' THEN 0D END) AS cannot_act_s,
            sum(CASE WHEN limited_by = 'TooFewReplicas' THEN seconds WHEN limited_by IS NOT NULL THEN 0D END)
                AS below_min_s,
            sum(CASE WHEN limited_by = 'TooManyReplicas' THEN seconds WHEN limited_by IS NOT NULL THEN 0D END)
                AS above_max_s
        FROM (SELECT *, (unix_micros(t_end) - unix_micros(t_start)) / 1e6D AS seconds FROM {autoscalers})
        WHERE aims_at = 'StreamApp' GROUP BY cluster, namespace, app, uid, dt
        """,
        autoscalers=autoscalers,
    )


def volume_daily(pods: DataFrame) -> DataFrame:
    """`g_volume_daily`: the largest state and the least free space of each volume while a pod used it, in bytes."""
    return query(
        """
        SELECT cluster, namespace, app, uid, dt, volume, max(ordinal) AS ordinal, max(state_bytes) AS state_bytes,
            min(free_bytes) AS free_bytes, max(requested_bytes) AS requested_bytes
        FROM {pods} WHERE volume <> '' AND state_bytes IS NOT NULL AND NOT coalesce(is_gone, false)
        GROUP BY cluster, namespace, app, uid, dt, volume
        """,
        pods=pods,
    )


def churn_daily(rebalances: DataFrame, pods: DataFrame, assignments: DataFrame, seen: DataFrame) -> DataFrame:
    """`g_churn_daily`: rebalances and moves; changed process IDs on one volume; members without a pod."""
    return query(
        """
        WITH moves AS (
            SELECT cluster, namespace, app, uid, dt, count(*) AS rebalances, sum(tasks_moved) AS tasks_moved,
                sum(moved_back) AS moved_back
            FROM {rebalances} GROUP BY cluster, namespace, app, uid, dt),
        identities AS (
            SELECT *, lag(process_id) OVER (
                PARTITION BY cluster, namespace, app, uid, ordinal, volume ORDER BY t_start) AS old_id
            FROM {pods} WHERE coalesce(process_id, '') <> '' AND coalesce(volume, '') <> ''),
        changes AS (
            SELECT cluster, namespace, app, uid, dt, count_if(old_id <> process_id) AS pid_changes
            FROM identities GROUP BY cluster, namespace, app, uid, dt),
        ghosts AS (
            SELECT cluster, namespace, app, uid, dt,
                count(DISTINCT CASE WHEN ordinal IS NULL THEN process_id END) AS ghost_members
            FROM {assignments} GROUP BY cluster, namespace, app, uid, dt)
        SELECT cluster, namespace, app, uid, dt, coalesce(rebalances, 0L) AS rebalances,
            coalesce(tasks_moved, 0L) AS tasks_moved, coalesce(moved_back, 0L) AS moved_back,
            coalesce(pid_changes, 0L) AS pid_changes, coalesce(ghost_members, 0L) AS ghost_members
        FROM {seen} LEFT JOIN moves USING (cluster, namespace, app, uid, dt)
        LEFT JOIN changes USING (cluster, namespace, app, uid, dt)
        LEFT JOIN ghosts USING (cluster, namespace, app, uid, dt)
        """,
        rebalances=rebalances,
        pods=pods,
        assignments=assignments,
        seen=seen,
    )
