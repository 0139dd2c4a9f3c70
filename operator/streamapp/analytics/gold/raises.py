"""Gold about what scale-ups brought: the growth of all changelogs before each, and after it."""

from typing import Final

from pyspark.sql import DataFrame

from streamapp.analytics.spark.sql import query

LEAST_MINUTES: Final = 10
"""Over which a rate is taken, at least."""


def _points(raises: DataFrame, samples: DataFrame) -> DataFrame:
    """The four samples between which rates are taken, and the first one of the next step."""
    far = f"INTERVAL {LEAST_MINUTES} MINUTES"
    point = "struct(s.ts, s.slots, s.tasks)"
    return query(
        f"""
        WITH daily AS (
            SELECT *, explode(sequence(date_sub(to_date(t_event), 1), date_add(to_date(t_end), 1))) AS day
            FROM {{raises}})
        SELECT r.cluster, r.event_id, coalesce(max(CASE WHEN s.ts <= r.t_event - {far} THEN {point} END),
                max(CASE WHEN s.ts <= r.t_event THEN {point} END)) AS b0,
            min(CASE WHEN s.ts >= r.t_event AND s.ts <= r.t_end THEN {point} END) AS b1,
            max(CASE WHEN s.ts >= r.t_event AND s.ts <= r.t_end THEN {point} END) AS a0,
            min(CASE WHEN s.ts >= r.t_end + {far} THEN {point} END) AS a1,
            min(CASE WHEN s.ts >= r.t_next THEN s.ts END) AS next_at
        FROM {{samples}} s JOIN daily r
            ON s.cluster = r.cluster AND s.namespace = r.namespace AND s.app = r.app AND s.uid = r.uid
            AND to_date(s.dt) = r.day
        GROUP BY r.cluster, r.event_id
        """,  # noqa: S608 - only our own words and numbers are put in
        raises=raises,
        samples=samples,
    )


def _rate(earlier: str, later: str) -> str:
    """Slots a second between two samples of the same tasks; null if one is missing, or an end fell."""
    return f"""CASE WHEN {earlier}.tasks = {later}.tasks AND {later}.slots >= {earlier}.slots
        AND {later}.ts > {earlier}.ts
        THEN ({later}.slots - {earlier}.slots) / ((unix_micros({later}.ts) - unix_micros({earlier}.ts)) / 1e6D) END"""


def raises(episodes: DataFrame, samples: DataFrame, seen: DataFrame) -> DataFrame:
    """`g_raise`: each scale-up that converged, with the slots a second that all changelogs took before and after.

    `pod_h` are the hours of the pods that came, until the desired replicas changed again or the record of the day after
    ended. A rate is null where no samples are so near that only one number of pods lies between them.
    """
    told = query(
        """
        WITH lined AS (
            SELECT *, lead(t_event) OVER w AS t_next
            FROM {episodes} WINDOW w AS (PARTITION BY cluster, namespace, app, uid ORDER BY t_event, event_id)),
        ends AS (
            SELECT e.cluster, e.event_id, max(s.t_last) AS t_last FROM {episodes} e JOIN {seen} s
                ON e.cluster = s.cluster AND e.namespace = s.namespace AND e.app = s.app AND e.uid = s.uid
                AND to_date(s.dt) BETWEEN to_date(e.t_event) AND date_add(e.t_event, 1)
            GROUP BY e.cluster, e.event_id)
        SELECT l.*, least(t_next, t_last) AS t_until FROM lined l JOIN ends USING (cluster, event_id)
        WHERE direction = 'up' AND outcome = 'converged'
        """,
        episodes=episodes,
        seen=seen,
    )
    return query(
        f"""
        SELECT r.cluster, namespace, app, uid, dt, t_event, actor, from_replicas, to_replicas,
            (to_replicas - from_replicas) * greatest(unix_micros(t_until) - unix_micros(t_end), 0L) / 3600e6D AS pod_h,
            {_rate("b0", "b1")} AS rate_before,
            CASE WHEN next_at IS NULL OR a1.ts <= next_at THEN {_rate("a0", "a1")} END AS rate_after
        FROM {{told}} r LEFT JOIN {{points}} p ON r.cluster = p.cluster AND r.event_id = p.event_id
        """,  # noqa: S608 - only our own words are put in
        told=told,
        points=_points(told, samples),
    )
