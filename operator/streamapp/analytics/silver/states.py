"""Silver from lines that tell a state which holds until the next one: decisions, layouts, pods.

A state becomes pieces that end at midnight, so that each lies in one day. It ends with the last line before a time in
which the application was not watched: what was not recorded is not known.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamapp.analytics.silver.lag import UNWATCHED
from streamapp.analytics.spark.sql import query
from streamapp.analytics.tables.derived_schemas import KEY


def stretches(seen: DataFrame) -> DataFrame:
    """Times in which an application was watched, also over midnight: `t_first`, `t_last`."""
    return query(
        f"""
        WITH spans AS (SELECT cluster, namespace, app, uid, inline(spans) FROM {{seen}}),
        lined AS (
            SELECT *, coalesce(t_first - lag(t_last) OVER w <= INTERVAL {UNWATCHED} SECONDS, false) AS goes_on
            FROM spans WINDOW w AS (PARTITION BY cluster, namespace, app, uid ORDER BY t_first)),
        numbered AS (
            SELECT *, count_if(NOT goes_on) OVER (
                PARTITION BY cluster, namespace, app, uid ORDER BY t_first ROWS UNBOUNDED PRECEDING) AS island
            FROM lined)
        SELECT cluster, namespace, app, uid, min(t_first) AS t_first, max(t_last) AS t_last
        FROM numbered GROUP BY cluster, namespace, app, uid, island
        """,  # noqa: S608 - only our own numbers are put in
        seen=seen,
    )


def pieces(lines: DataFrame, carried: DataFrame, seen: DataFrame, by: tuple[str, ...] = ()) -> DataFrame:
    """Lines as states with `t_start`, `t_end` and the day `dt` they lie in.

    Args:
        lines: with `ts`, `recorder`, `seq`.
        carried: the same columns but those three: pieces of the day before, those that reach midnight go on.
        seen: `s_seen` of all days that lines and carried pieces lie in.
        by: what has a state of its own, beside the application.
    """
    payload = [name for name in lines.columns if name not in {"ts", "recorder", "seq", "dt"}]
    midnight = F.col("t_end") == F.date_trunc("day", "t_end")
    before = carried.where(midnight).select(
        *payload, F.col("t_end").alias("ts"), F.lit("").alias("recorder"), F.lit(-1).cast("bigint").alias("seq")
    )
    every = lines.select(*payload, "ts", "recorder", "seq").unionByName(before)
    keys = ", ".join([*KEY, *by])
    order = f"PARTITION BY {keys} ORDER BY ts, recorder, seq"
    states = every.withColumn("next", F.expr(f"lead(ts) OVER ({order})"))
    spans = query(
        """
        SELECT /*+ BROADCAST(r) */ s.*, least(s.next, r.t_last) AS stop
        FROM {states} s JOIN {stretches} r
            ON s.cluster = r.cluster AND s.namespace = r.namespace AND s.app = r.app AND s.uid = r.uid
            AND s.ts BETWEEN r.t_first AND r.t_last
        """,
        states=states,
        stretches=stretches(seen),
    )
    cut = spans.where("stop > ts").withColumn("day", F.expr("explode(sequence(to_date(ts), to_date(stop)))"))
    return (
        cut.withColumn("t_start", F.expr("greatest(ts, timestamp(day))"))
        .withColumn("t_end", F.expr("least(stop, timestamp(date_add(day, 1)))"))
        .where("t_end > t_start")
        .select(*payload, "t_start", "t_end", F.date_format("day", "yyyy-MM-dd").alias("dt"))
    )


def assignments(layouts: DataFrame, config: DataFrame) -> DataFrame:
    """`s_assignment_interval`: what each process holds while a layout lasts, and how much of it keeps state.

    Which tasks keep state is what the configuration says that is in force at the layout's end: a recorder reads the
    group before it tells the configuration, and tells one before it knows the tasks. The first one that is known holds
    for the time before it too.
    """
    return query(
        """
        WITH held AS (SELECT * EXCEPT (holders), inline(holders) FROM {layouts}),
        configs AS (
            SELECT *, row_number() OVER (PARTITION BY cluster, namespace, app, uid ORDER BY valid_from) = 1 AS is_first
            FROM {config})
        SELECT /*+ BROADCAST(c) */ h.cluster, h.namespace, h.app, h.uid, h.epoch, h.t_start, h.t_end, h.dt,
            h.process_id, h.ordinal, h.threads, coalesce(size(h.active), 0) AS active, coalesce(size(h.standby), 0)
                AS standby,
            CASE WHEN size(c.stateful_tasks) > 0 THEN size(array_intersect(h.active, c.stateful_tasks))
                ELSE size(h.active) END AS stateful_active
        FROM held h LEFT JOIN configs c
            ON h.cluster = c.cluster AND h.namespace = c.namespace AND h.app = c.app AND h.uid = c.uid
            AND (c.is_first OR h.t_end > c.valid_from) AND (c.valid_to IS NULL OR h.t_end <= c.valid_to)
        """,
        layouts=layouts,
        config=config,
    )


def _moves(known: DataFrame) -> DataFrame:
    """How many tasks another process runs from the beginning of a layout on, and how many came back by it."""
    owned = query(
        """
        WITH held AS (SELECT * EXCEPT (holders), inline(holders) FROM {known}),
        tasks AS (SELECT *, explode(active) AS task FROM held),
        lined AS (
            SELECT *, lag(process_id) OVER w AS before, lag(t_end) OVER w AS left_at FROM tasks
            WINDOW w AS (PARTITION BY cluster, namespace, app, uid, task ORDER BY t_start, epoch))
        SELECT * FROM lined WHERE before <> process_id AND t_start - left_at <= INTERVAL 1 HOUR
        """,
        known=known,
    )
    return query(
        """
        SELECT a.cluster, a.namespace, a.app, a.uid, a.t_start, count(DISTINCT a.task) AS tasks_moved,
            count(DISTINCT CASE WHEN b.task IS NOT NULL THEN a.task END) AS moved_back
        FROM {owned} a LEFT JOIN {owned} b
            ON a.cluster = b.cluster AND a.namespace = b.namespace AND a.app = b.app AND a.uid = b.uid
            AND a.task = b.task AND a.process_id = b.before
            AND b.left_at < a.t_start AND a.t_start - b.left_at <= INTERVAL 1 HOUR
        GROUP BY a.cluster, a.namespace, a.app, a.uid, a.t_start
        """,
        owned=owned,
    )


def rebalances(layouts: DataFrame) -> DataFrame:
    """`s_rebalance`: each layout that follows another one within an hour, and what moved by it.

    A recorder begins with a layout of its own, which is no other one where the same processes hold the same copies.

    A task moves where another process runs it than the last one that did, left at most an hour before; it moves back
    where that process had left it within the hour. Layouts of the day before the first wanted one are needed.
    """
    known = layouts.where(F.size("holders") > 0)
    return query(
        """
        WITH named AS (
            SELECT *, array_distinct(transform(holders, h -> h.process_id)) AS who,
                transform(holders, h -> struct(h.process_id, h.active, h.standby)) AS held FROM {known}),
        lined AS (
            SELECT *, lag(epoch) OVER w AS old_epoch, lag(held) OVER w AS old_held,
                lag(t_end) OVER w AS old_end, lag(who) OVER w AS old_who
            FROM named
            WINDOW w AS (PARTITION BY cluster, namespace, app, uid ORDER BY t_start, epoch))
        SELECT l.cluster, l.namespace, l.app, l.uid, l.epoch, l.t_start AS ts, l.dt, l.follow_up,
            size(who) AS members, size(array_except(who, old_who)) AS members_joined,
            size(array_except(old_who, who)) AS members_left,
            coalesce(m.tasks_moved, 0L) AS tasks_moved, coalesce(m.moved_back, 0L) AS moved_back
        FROM lined l LEFT JOIN {moves} m
            ON l.cluster = m.cluster AND l.namespace = m.namespace AND l.app = m.app AND l.uid = m.uid
            AND l.t_start = m.t_start
        WHERE old_epoch <> l.epoch AND old_held <> l.held AND l.t_start - old_end <= INTERVAL 1 HOUR
        """,
        known=known,
        moves=_moves(known),
    )
