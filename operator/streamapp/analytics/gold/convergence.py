"""Gold about steps: how long they take, what holds them, how fast copies are restored."""

from pyspark.sql import DataFrame

from streamapp.analytics.spark.sql import query

SLO_SECONDS = {"up": 900, "down": 1800}
"""Within which 95 of 100 steps should have converged."""
HALF_LIFE_DAYS = 14
SHRINK = 5
"""Stints, at most, that what is known of the siblings counts for, beside a task's or a volume's own."""
SAME = 1e-12
"""Variance of logarithms below which siblings are all alike."""


def _survival(episodes: DataFrame) -> DataFrame:
    """The part of steps (`survives`) that were not converged after each time `t` at which one ended."""
    return query(
        """
        WITH times AS (
            SELECT cluster, namespace, app, uid, dt, direction, observed_s AS t, count(*) AS n,
                count_if(outcome = 'converged') AS d
            FROM {episodes} GROUP BY cluster, namespace, app, uid, dt, direction, observed_s),
        risk AS (
            SELECT *, sum(n) OVER (PARTITION BY cluster, namespace, app, uid, dt, direction ORDER BY t DESC) AS at_risk
            FROM times)
        SELECT *, CASE WHEN min(at_risk - d) OVER w = 0 THEN 0D
            ELSE exp(sum(CASE WHEN d < at_risk THEN ln(1 - d / at_risk) ELSE 0D END) OVER w) END AS survives
        FROM risk
        WINDOW w AS (PARTITION BY cluster, namespace, app, uid, dt, direction ORDER BY t)
        """,
        episodes=episodes,
    )


def convergence_daily(episodes: DataFrame) -> DataFrame:
    """`g_convergence_daily`: quantiles after Kaplan and Meier; steps not seen to their end count as long as seen.

    A quantile is null where so many steps were never seen to converge.
    """
    return query(
        f"""
        WITH quantiles AS (
            SELECT cluster, namespace, app, uid, dt, direction, sum(n) AS n, sum(d) AS n_converged,
                min(CASE WHEN survives <= 0.5 + 1e-9 THEN t END) AS km_p50,
                min(CASE WHEN survives <= 0.1 + 1e-9 THEN t END) AS km_p90,
                min(CASE WHEN survives <= 0.05 + 1e-9 THEN t END) AS km_p95,
                min(CASE WHEN survives <= 0.01 + 1e-9 THEN t END) AS km_p99, max(t) AS longest
            FROM {{survival}} GROUP BY cluster, namespace, app, uid, dt, direction),
        spent AS (
            SELECT cluster, namespace, app, uid, dt, direction, phase, sum(seconds) AS seconds
            FROM (SELECT *, explode(phases) AS (phase, seconds) FROM {{episodes}})
            GROUP BY cluster, namespace, app, uid, dt, direction, phase),
        shares AS (
            SELECT cluster, namespace, app, uid, dt, direction,
                map_from_entries(array_sort(collect_list(struct(phase, seconds / total)))) AS phase_share
            FROM (SELECT *, sum(seconds) OVER (PARTITION BY cluster, namespace, app, uid, dt, direction) AS total
                FROM spent)
            WHERE total > 0 GROUP BY cluster, namespace, app, uid, dt, direction)
        SELECT *, n - n_converged AS n_censored,
            CASE WHEN km_p95 IS NOT NULL THEN km_p95 <= slo WHEN longest > slo THEN false END AS slo_met
        FROM (SELECT *, CASE direction WHEN 'up' THEN {SLO_SECONDS["up"]} ELSE {SLO_SECONDS["down"]} END AS slo
            FROM quantiles)
        LEFT JOIN shares USING (cluster, namespace, app, uid, dt, direction)
        """,  # noqa: S608 - only our own numbers are put in
        survival=_survival(episodes),
        episodes=episodes,
    )


def hold_blame(holds: DataFrame) -> DataFrame:
    """`g_hold_blame`: seconds of holding by day, reason and task; `sole_s` of them for this task alone."""
    return query(
        """
        SELECT cluster, namespace, app, uid, dt, reason, task, ordinal, sum(share_s) AS blame_s, sum(sole_s) AS sole_s,
            sum(stuck_s) AS stuck_s,
            count_if(critical) AS critical_n, count(DISTINCT hold_id) AS holds
        FROM {holds} GROUP BY cluster, namespace, app, uid, dt, reason, task, ordinal
        """,
        holds=holds,
    )


def _rated(stints: DataFrame, pods: DataFrame) -> DataFrame:
    """Stints that count, with their volume, subtopology and weight."""
    return query(
        f"""
        WITH volumes AS (
            SELECT cluster, namespace, app, uid, process_id, max_by(volume, struct(t_start, volume)) AS volume,
                max_by(node, struct(t_start, node)) AS node
            FROM {{pods}} WHERE coalesce(process_id, '') <> '' AND coalesce(volume, '') <> ''
            GROUP BY cluster, namespace, app, uid, process_id),
        good AS (
            SELECT *, max(t_start) OVER (PARTITION BY cluster, namespace, app, uid) AS updated
            FROM {{stints}} WHERE grade IN ('A', 'B') AND gross_rate IS NOT NULL)
        SELECT g.*, v.volume, v.node, substring_index(task, '_', 1) AS subtopology,
            pow(2D, -(unix_micros(updated) - unix_micros(t_start)) / 86400e6D / {HALF_LIFE_DAYS}) AS weight
        FROM good g LEFT JOIN volumes v USING (cluster, namespace, app, uid, process_id)
        """,  # noqa: S608 - only our own numbers are put in
        stints=stints,
        pods=pods,
    )


def _profiles(rated: DataFrame) -> DataFrame:
    """Rates by scope, with the mean (`own`) and the variance (`spread`) of their logarithms."""
    return query(
        """
        WITH scoped AS (
            SELECT *, ln(greatest(gross_rate, 1D)) AS log, explode(array(
                struct('subtopology' AS scope, cast(NULL AS string) AS of_task, cast(NULL AS string) AS of_volume),
                struct('task' AS scope, task AS of_task, cast(NULL AS string) AS of_volume),
                struct('volume' AS scope, cast(NULL AS string) AS of_task, volume AS of_volume))) AS s
            FROM {rated})
        SELECT cluster, namespace, app, uid, s.scope AS scope, subtopology, s.of_task AS task, s.of_volume AS volume,
            count(*) AS n_stints, percentile(gross_rate, array(0.1D, 0.5D, 0.9D)) AS rates,
            sum(weight * gross_rate) / sum(weight) AS rate_mean, sum(weight * log) / sum(weight) AS own,
            greatest(sum(weight * log * log) / sum(weight) - pow(sum(weight * log) / sum(weight), 2), 0D) AS spread,
            max(updated) AS updated, max(CASE WHEN s.scope = 'volume' THEN nullif(node, '') END) AS node
        FROM scoped WHERE s.scope <> 'volume' OR s.of_volume IS NOT NULL
        GROUP BY cluster, namespace, app, uid, s.scope, subtopology, s.of_task, s.of_volume
        """,
        rated=rated,
    )


def restore_profile(stints: DataFrame, pods: DataFrame) -> DataFrame:
    """`g_restore_profile`: slots a second by subtopology, and of it by task and by volume; stints of grade A and B.

    `rate_mean` weighs recent stints more. `rate_learned` is the geometric mean, drawn towards that of the siblings: by
    so many stints as siblings differ less from each other than stints of one of them do, `SHRINK` at most. So a sick
    volume keeps its own rate, and does not count for that of others.
    """
    return query(
        f"""
        WITH pooled AS (
            SELECT *, (sum(n_stints) OVER w) - n_stints AS others,
                (sum(n_stints * own) OVER w) - n_stints * own AS of_others,
                var_pop(own) OVER w AS apart,
                (sum(n_stints * spread) OVER w) / (sum(n_stints) OVER w) AS inside
            FROM {{profiles}} WINDOW w AS (PARTITION BY cluster, namespace, app, uid, scope, subtopology)),
        drawn AS (
            SELECT *, CASE WHEN others > 0 THEN of_others / others ELSE own END AS pool,
                CASE WHEN apart > {SAME}D THEN least({SHRINK}D, inside / apart) ELSE {SHRINK}D END AS pull
            FROM pooled)
        SELECT cluster, namespace, app, uid, scope, subtopology, task, volume, node, n_stints,
            rate_mean, updated,
            rates[0] AS rate_p10, rates[1] AS rate_p50, rates[2] AS rate_p90,
            exp((n_stints * own + pull * pool) / (n_stints + pull)) AS rate_learned
        FROM drawn
        """,  # noqa: S608 - only our own numbers are put in
        profiles=_profiles(_rated(stints, pods)),
    )
