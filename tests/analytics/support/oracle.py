"""Gold once more, by DuckDB from the files of bronze: other words for the definitions of docs/analytics.md.

It looks at all history at once, sorts where Spark hashes, and knows nothing of silver. `t` is microseconds since 1970.
"""

from pathlib import Path
from typing import Any

import duckdb

from streamapp.analytics.tables.bronze_schemas import TABLES
from tests.analytics.support.reading import files

DAY = 86_400_000_000

LINES = f"""
CREATE VIEW every AS SELECT k, t FROM b_sample {
    " ".join(
        f"UNION ALL SELECT k, t FROM {table}" for table in TABLES.values() if table not in {"b_sample", "b_recorder"}
    )
};
CREATE TABLE app_day AS SELECT k, t // {DAY} AS d, max(t) AS t_last FROM every GROUP BY ALL;
CREATE TABLE pause AS
SELECT k, t, t // {DAY} AS d, lag(t) OVER (PARTITION BY k ORDER BY t) AS before FROM every;
CREATE TABLE watch AS SELECT k, min(t) AS t, max(t) AS t_end FROM (
    SELECT *, count(*) FILTER (before IS NULL OR t - before > 600e6) OVER (PARTITION BY k ORDER BY t
        RANGE UNBOUNDED PRECEDING) AS n FROM pause) GROUP BY k, n;
"""

SAMPLES = """
CREATE VIEW config AS SELECT k, t, least(acceptable_recovery_lag, last_value(application_recovery_lag IGNORE NULLS)
    OVER (PARTITION BY k ORDER BY t, recorder, seq)) AS a FROM b_config;
CREATE TABLE lagged AS
SELECT s.*, coalesce(c.a, (SELECT arg_min(a, t) FROM config f WHERE f.k = s.k), 0) AS a,
    role = 'ACTIVE' AND state = 'RUNNING' AS runs,
    CASE WHEN role = 'ACTIVE' AND state = 'RUNNING' THEN 0 ELSE greatest(end_offset - "offset", 0)
        + CASE WHEN "offset" IS NULL OR end_offset IS NULL THEN NULL ELSE 0 END END AS lag
FROM b_sample s ASOF LEFT JOIN config c ON s.k = c.k AND s.t >= c.t;
CREATE TABLE stint AS
WITH lined AS (
    SELECT *, lag > a AS behind, lag(lag > a) OVER w AS was, lag(t) OVER w AS before,
        lag(interval_seconds) OVER w AS usual, lead(t) OVER w AS after
    FROM lagged WHERE lag IS NOT NULL WINDOW w AS (PARTITION BY k, task, ordinal, process_id ORDER BY t, seq)),
cut AS (SELECT *, before IS NULL OR t - before > 1e6 * greatest(300, 5 * usual) AS broken,
    coalesce("offset" < lag("offset") OVER (PARTITION BY k, task, ordinal, process_id ORDER BY t, seq), false) AS fell
    FROM lined),
numbered AS (
    SELECT *, count(*) FILTER (behind AND (broken OR fell OR NOT was)) OVER (
        PARTITION BY k, task, ordinal, process_id ORDER BY t, seq ROWS UNBOUNDED PRECEDING) AS run
    FROM cut),
kept AS (SELECT * FROM numbered WHERE behind OR (was AND NOT broken))
SELECT k, task, ordinal, process_id, min(t) AS t_start, max(t) AS t_end, max(t) FILTER (NOT behind) AS t_caught_up,
    count(*) FILTER (behind) AS n, max("offset") FILTER (behind) - min("offset") AS restored,
    (max(t) FILTER (behind) - min(t)) / 1e6 AS spent,
    count(*) FILTER (followed) / sum(greatest(1, (after - t)::BIGINT // (interval_seconds * 1e6)::BIGINT))
        FILTER (followed) AS complete
FROM (SELECT *, coalesce(behind AND source = 'AGENT' AND after - t <= 1e6 * greatest(300, 5 * interval_seconds), false)
    AS followed FROM kept) GROUP BY k, task, ordinal, process_id, run;
"""

STEPS = f"""
CREATE TABLE layout AS
SELECT *, lag(epoch) OVER w AS old_epoch, lag(stop) OVER w AS old_stop,
    [(h.process_id, h.active, h.standby) for h in holders]::VARCHAR AS held, lag(held) OVER w AS old_held
FROM (SELECT g.*, least(lead(g.t) OVER (PARTITION BY g.k ORDER BY g.t, recorder, seq), e.t_end) AS stop
    FROM b_group g ASOF JOIN watch e ON g.k = e.k AND g.t >= e.t WHERE len(holders) > 0)
WHERE stop > t WINDOW w AS (PARTITION BY k ORDER BY t, recorder, seq);
CREATE TABLE owner AS
WITH held AS (SELECT k, t, stop, epoch, unnest(holders) AS h FROM layout),
tasks AS (SELECT k, t, stop, epoch, h.process_id AS process_id, unnest(h.active) AS task FROM held)
SELECT *, if(t - lag(stop) OVER w <= 3600e6, lag(process_id) OVER w, NULL) AS old, lag(stop) OVER w AS freed
FROM tasks WINDOW w AS (PARTITION BY k, task ORDER BY t);
CREATE TABLE move AS
SELECT a.*, EXISTS (SELECT 1 FROM owner b WHERE b.k = a.k AND b.task = a.task AND b.old = a.process_id
    AND b.old <> b.process_id AND b.freed < a.t AND a.t - b.freed <= 3600e6) AS back
FROM owner a WHERE a.old <> a.process_id;
CREATE TABLE rebalance AS
SELECT l.k, l.t, (SELECT count(*) FROM move m WHERE m.k = l.k AND m.t = l.t) AS moved,
    (SELECT count(*) FROM move m WHERE m.k = l.k AND m.t = l.t AND m.back) AS back
FROM layout l WHERE l.old_epoch <> l.epoch AND l.old_held <> l.held AND l.t - l.old_stop <= 3600e6;
CREATE TABLE event AS
WITH lined AS (
    SELECT *, lag(new_replicas) OVER w AS was,
        CASE WHEN was = new_replicas AND lag(recorder) OVER w <> recorder THEN was
        WHEN old_replicas IS NULL THEN was ELSE old_replicas END AS old
    FROM b_scale WINDOW w AS (PARTITION BY k ORDER BY t, recorder, seq)),
changes AS (SELECT k, t, seq, actor, old, new_replicas AS new FROM lined WHERE old <> new_replicas)
SELECT *, CASE WHEN new > old THEN 'up' ELSE 'down' END AS direction, lead(t) OVER w AS t_next, lead(new) OVER w
    AS n_next,
    least(lead(t) OVER w, t + {DAY}, (SELECT max(t_last) FROM app_day a WHERE a.k = c.k AND a.d - c.t // {DAY} IN (0,
        1)))
        AS t_stop
FROM changes c WINDOW w AS (PARTITION BY k ORDER BY t, seq);
CREATE TABLE ended AS
SELECT *, coalesce(t_conv, t_stop) AS t_end FROM (SELECT e.*, (SELECT min(t) FROM b_decision d WHERE d.k = e.k
    AND d.t > e.t AND d.t <= e.t_stop AND d.converged
    AND d.desired = e.new AND d.granted = e.new) AS t_conv FROM event e);
CREATE TABLE edge AS
SELECT *,
    (SELECT min(t) FROM b_decision d WHERE d.k = e.k AND d.t > e.t AND d.t <= e.t_stop
        AND CASE WHEN direction = 'up' THEN d.granted >= new ELSE d.granted <= new END) AS granted,
    (SELECT min(t) FROM b_decision d WHERE d.k = e.k AND d.t > e.t AND d.t <= e.t_stop AND d.actual <= new) AS gone,
    (SELECT CASE WHEN count(*) >= e.new - e.old THEN max(f) END FROM (SELECT ordinal, min(t) AS f FROM b_pod p
        WHERE p.k = e.k AND p.t > e.t AND p.t <= e.t_end AND p.ordinal >= e.old AND p.ordinal < e.new AND p.is_scheduled
        AND NOT coalesce(p.is_gone, false) GROUP BY ordinal)) AS scheduled,
    (SELECT CASE WHEN count(*) >= e.new - e.old THEN max(f) END FROM (SELECT ordinal, min(t) AS f FROM b_pod p
        WHERE p.k = e.k AND p.t > e.t AND p.t <= e.t_end AND p.ordinal >= e.old AND p.ordinal < e.new AND p.is_ready
        AND NOT coalesce(p.is_gone, false) GROUP BY ordinal)) AS ready,
    (SELECT min(t) FROM b_group g WHERE g.k = e.k AND g.t > e.t AND g.t <= e.t_end AND len(g.holders) >= e.new)
        AS joined,
    (SELECT max(coalesce(t_caught_up, s.t_end)) FROM stint s WHERE s.k = e.k AND s.t_start < e.t_end AND s.t_end > e.t)
        AS restored,
    (SELECT coalesce(sum(s.restored), 0) FROM stint s
        WHERE s.k = e.k AND s.t_start >= e.t AND s.t_start < e.t_end) AS slots,
    (SELECT max(r.t) FROM rebalance r WHERE r.k = e.k AND r.t > e.t AND r.t <= e.t_end) AS probed
FROM ended e;
"""

CONVERGENCE = f"""
WITH told AS (
    SELECT *, (t_end - t) / 1e6 AS seconds, t_conv IS NOT NULL AS done,
        CASE WHEN done THEN t ELSE t_end END AS unseen FROM edge),
up AS (
    SELECT *, least(coalesce(granted, unseen), t_end) AS e1,
        greatest(e1, least(CASE WHEN done THEN coalesce(scheduled, t) ELSE coalesce(scheduled, t_end) END, t_end))
            AS e2,
        greatest(e2, least(coalesce(ready, unseen), t_end)) AS e3,
        greatest(e3, least(coalesce(joined, unseen), t_end)) AS e4,
        greatest(e4, least(coalesce(restored, t), t_end)) AS e5, greatest(e5, least(coalesce(probed, t), t_end)) AS e6
    FROM told WHERE direction = 'up'),
down AS (
    SELECT *, least(coalesce(granted, unseen), t_end) AS e1, greatest(e1, least(coalesce(gone, unseen), t_end)) AS e2,
        greatest(e2, least(coalesce(restored, t), t_end)) AS e3, greatest(e3, least(coalesce(probed, t), t_end)) AS e4
    FROM told WHERE direction = 'down'),
phases AS (
    SELECT k, t // {DAY} AS d, direction, t, seconds, done, MAP {{'grant': e1 - t, 'schedule': e2 - e1,
        'start': e3 - e2,
        'join': e4 - e3, 'restore': e5 - e4, 'probe': e6 - e5, 'settle': t_end - e6}} AS p FROM up
    UNION ALL
    SELECT k, t // {DAY}, direction, t, seconds, done, MAP {{'hold': e1 - t, 'drain': e2 - e1, 'restore': e3 - e2,
        'probe': e4 - e3, 'settle': t_end - e4}} FROM down),
curve AS (
    SELECT DISTINCT k, d, direction, seconds,
        (SELECT product(1 - died::DOUBLE / at_risk) FROM (
            SELECT y.seconds, count(*) FILTER (y.done) AS died, (SELECT count(*) FROM phases z
                WHERE z.k = x.k AND z.d = x.d AND z.direction = x.direction AND z.seconds >= y.seconds) AS at_risk
            FROM phases y WHERE y.k = x.k AND y.d = x.d AND y.direction = x.direction AND y.seconds <= x.seconds
            GROUP BY y.seconds)) AS s
    FROM phases x),
quantile AS (
    SELECT k, d, direction, min(seconds) FILTER (s <= 0.5 + 1e-9) AS km_p50, min(seconds) FILTER (s <= 0.1 + 1e-9)
        AS km_p90,
        min(seconds) FILTER (s <= 0.05 + 1e-9) AS km_p95, min(seconds) FILTER (s <= 0.01 + 1e-9) AS km_p99
    FROM curve GROUP BY ALL),
counts AS (
    SELECT k, d, direction, count(*) AS n, count(*) FILTER (done) AS n_converged, max(seconds) AS longest,
        sum(seconds) * 1e6 AS total, list(p) AS ps FROM phases GROUP BY ALL),
names AS (SELECT k, d, direction, unnest(map_keys(ps[1])) AS name FROM counts),
shares AS (
    SELECT k, d, direction, map_from_entries(list((name, share))) AS phase_share FROM (
        SELECT n.k, n.d, n.direction, name, list_sum(list_transform(ps, lambda q: q[name])) / total AS share
        FROM names n JOIN counts USING (k, d, direction)) GROUP BY ALL)
SELECT k, d, direction, n, n_converged, n - n_converged AS n_censored, km_p50, km_p90, km_p99, phase_share,
    CASE WHEN km_p95 IS NOT NULL THEN km_p95 <= if(direction = 'up', 900, 1800)
        WHEN longest > if(direction = 'up', 900, 1800) THEN false END AS slo_met
FROM counts JOIN quantile USING (k, d, direction) JOIN shares USING (k, d, direction)
"""


def _split(source: str, columns: str) -> str:
    """Rows of a state from `t` to `stop`, cut at midnight: `a` to `b` on day `d`."""
    return f"""(SELECT {columns}, d, greatest(t, d * {DAY}) AS a, least(stop, (d + 1) * {DAY}) AS b
        FROM (SELECT *, unnest(generate_series(t // {DAY}, (stop - 1) // {DAY})) AS d FROM {source} WHERE stop > t))"""


OUTAGES = f"""
CREATE TABLE restoring AS
WITH told AS (
    SELECT *, t // {DAY} AS d, state = 'RESTORING' AS stands FROM b_sample
    WHERE role = 'ACTIVE' AND state IS NOT NULL),
runs AS (
    SELECT *, coalesce(lag(stands) OVER w, false) AS stood FROM told
    WINDOW w AS (PARTITION BY k, task, d ORDER BY t, seq, ordinal)),
numbered AS (
    SELECT *, count(*) FILTER (stands AND NOT stood) OVER (PARTITION BY k, task, d ORDER BY t, seq, ordinal) AS run
    FROM runs)
SELECT k, task, min(t) AS stop, max(t) AS back, max(t) FILTER (NOT stands) AS again, max(interval_seconds) AS err
FROM numbered WHERE stands OR stood GROUP BY k, task, d, run;
CREATE TABLE alive AS
SELECT * FROM (
    SELECT p.*, least(lead(p.t) OVER (PARTITION BY p.k, ordinal ORDER BY p.t, recorder, seq), e.t_end) AS until
    FROM b_pod p ASOF JOIN watch e ON p.k = e.k AND p.t >= e.t) WHERE until > t;
CREATE TABLE replaced AS
WITH lined AS (
    SELECT *, lag(until) OVER w AS old_until,
        lag(pod_uid) OVER w AS old_uid, lag(revision) OVER w AS old_revision, lag(container_id) OVER w AS old_box
    FROM alive WHERE until > t WINDOW w AS (PARTITION BY k, ordinal ORDER BY t, recorder, seq))
SELECT k, t, t AS u, CASE WHEN old_uid = pod_uid THEN 1 WHEN revision <> old_revision AND revision <> ''
    AND old_revision <> '' THEN 2 ELSE 4 END AS place
FROM lined WHERE old_until = t
    AND (old_uid <> pod_uid OR container_id <> old_box AND container_id <> '' AND old_box <> '');
CREATE TABLE outage AS
WITH gaps AS (
    SELECT k, task, last_ran_at_us AS stop, t AS back, greatest(t - last_ran_at_us, 0) / 1e6 AS most,
        greatest(0, least(stood_seconds, most)) AS least,
        false AS is_open, true AS begins
    FROM (SELECT *, epoch_us(last_ran_at) AS last_ran_at_us FROM b_gap)),
seams AS (
    SELECT *, coalesce(again IS NULL AND lead(stop) OVER w - back <= 600e6 AND lead(d) OVER w = d + 1, false)
        AS goes_on,
        coalesce(lag(again) OVER w IS NULL AND stop - lag(back) OVER w <= 600e6 AND lag(d) OVER w = d - 1, false)
            AS goes_back
    FROM (SELECT *, back // {DAY} AS d FROM restoring) WINDOW w AS (PARTITION BY k, task ORDER BY stop)),
cut AS (
    SELECT k, task, if(goes_back, d * {DAY}, stop) AS stop, if(goes_on, (d + 1) * {DAY}, back) AS back, again,
        if(goes_on, 0, err) AS err, goes_on, NOT goes_back AS begins FROM seams),
alone AS (
    SELECT k, task, stop, back, (back - stop) / 1e6 AS most, greatest(0, most - err) AS least,
        again IS NULL AND NOT goes_on AND (
            SELECT max(t_last) FROM app_day a WHERE a.k = r.k AND a.d - r.back // {DAY} IN (0, 1)) - back <= 600e6,
        begins
    FROM cut r WHERE NOT EXISTS (
        FROM gaps g WHERE g.k = r.k AND g.task = r.task AND g.stop <= r.back AND g.back >= r.stop)),
why AS (
    FROM replaced UNION ALL SELECT k, t, t_end, 3 FROM edge UNION ALL SELECT k, t, t, 5 FROM rebalance)
SELECT *, ['crash', 'rollout', 'scale', 'eviction', 'rebalance', 'unknown'][coalesce((
    SELECT min(place) FROM why w WHERE w.k = o.k AND w.t <= o.back + 30e6 AND w.u >= o.stop - 30e6), 6)] AS cause
FROM (FROM gaps UNION ALL FROM alone) o;
"""

DECISIONS = """
CREATE TABLE decided AS
SELECT d.*, least(lead(d.t) OVER (PARTITION BY d.k ORDER BY d.t, recorder, seq), e.t_end) AS stop
FROM b_decision d ASOF JOIN watch e ON d.k = e.k AND d.t >= e.t;
CREATE TABLE scaler AS
SELECT a.*, least(lead(a.t) OVER (PARTITION BY a.k, name, aims_at ORDER BY a.t, recorder, seq), e.t_end) AS stop
FROM b_autoscaler a ASOF JOIN watch e ON a.k = e.k AND a.t >= e.t;
CREATE VIEW mounted AS SELECT *, until AS stop FROM alive WHERE volume <> '' AND state_bytes >= 0
    AND is_gone IS DISTINCT FROM true;
"""

GOLD = {
    "g_downtime_daily": f"""
        WITH daily AS (SELECT k, d, max(t) AS t1,
            coalesce(sum(t - before) FILTER (before // {DAY} = d AND t - before <= 600e6), 0) / 1e6 AS watched
            FROM pause GROUP BY ALL),
        sized AS (
            SELECT *, (SELECT max_by(c.tasks, c.t) FROM b_config c WHERE c.k = y.k AND c.t <= y.t1) AS tasks,
                (SELECT max_by(c.availability, c.t) FROM b_config c WHERE c.k = y.k AND c.t <= y.t1) AS availability
            FROM daily y),
        pieces AS (SELECT *, unnest(generate_series(stop // {DAY}, back // {DAY})) AS d FROM outage),
        parts AS (SELECT *, if(back = stop, 1, (least(back, (d + 1) * {DAY}) - greatest(stop, d * {DAY}))
            / (back - stop)) AS share FROM pieces),
        causes AS (
            SELECT k, d, cause, sum(most * share) AS most, sum(least * share) AS least, max(most) AS worst,
                count(*) FILTER (begins AND d = stop // {DAY}) AS n, count(*) FILTER (is_open) AS open
            FROM parts WHERE share > 0 GROUP BY ALL),
        worst AS (
            SELECT k, d, max(task) AS task FROM parts p WHERE share > 0 AND most = (
                SELECT max(most) FROM parts q WHERE q.k = p.k AND q.d = p.d AND q.share > 0) GROUP BY ALL)
        SELECT k, d, tasks, availability, tasks * watched AS task_s, coalesce(sum(c.n), 0) AS n,
            coalesce(sum(c.least), 0) AS at_least_s,
            coalesce(sum(c.most), 0) AS at_most_s,
            map_from_entries(coalesce(list((cause, c.most)) FILTER (cause IS NOT NULL), [])) AS by_cause,
            max(c.worst) AS worst_s, any_value(w.task) AS worst_task, coalesce(sum(open), 0) AS open
        FROM sized LEFT JOIN causes c USING (k, d) LEFT JOIN worst w USING (k, d) GROUP BY k, d, watched, t1, tasks,
            availability""",
    "g_restore_profile": """
        WITH rated AS (
            SELECT s.*, restored / spent AS rate, split_part(task, '_', 1) AS sub
            FROM stint s WHERE n >= 3 AND spent > 0),
        good AS (
            SELECT r.*, v.volume, v.node, max(t_start) OVER (PARTITION BY r.k) AS newest,
                exp(-ln(2) * (newest - t_start) / 86400e6 / 14) AS w
            FROM rated r LEFT JOIN (SELECT k, process_id, arg_max(volume, t) AS volume,
                arg_max(node, t) AS node FROM alive
                WHERE process_id <> '' AND volume <> '' GROUP BY ALL) v USING (k, process_id) WHERE complete >= 0.8),
        scoped AS (
            SELECT 'subtopology' AS scope, NULL AS of_task, NULL AS of_volume, * FROM good
            UNION ALL SELECT 'task', task, NULL, * FROM good
            UNION ALL SELECT 'volume', NULL, volume, * FROM good WHERE volume IS NOT NULL),
        profile AS (
            SELECT k, scope, sub, of_task, of_volume, count(*) AS n_stints, quantile_cont(rate, 0.1) AS rate_p10,
                quantile_cont(rate, 0.5) AS rate_p50, quantile_cont(rate, 0.9) AS rate_p90,
                sum(w * rate) / sum(w) AS rate_mean, max(newest) AS newest,
                max(nullif(node, '')) FILTER (scope = 'volume') AS node,
                sum(w * ln(greatest(rate, 1))) / sum(w) AS m,
                greatest(0, sum(w * ln(greatest(rate, 1)) ** 2) / sum(w) - m ** 2) AS v
            FROM scoped GROUP BY ALL),
        kin AS (
            SELECT p.k, p.scope, p.sub, p.of_task, p.of_volume, sum(q.n_stints) - any_value(p.n_stints) AS others,
                var_pop(q.m) AS apart, sum(q.n_stints * q.v) / sum(q.n_stints) AS inside,
                if(others > 0, (sum(q.n_stints * q.m) - any_value(p.n_stints * p.m)) / others, any_value(p.m)) AS pool,
                if(apart > 1e-12, least(5, inside / apart), 5) AS pull
            FROM profile p JOIN profile q ON p.k = q.k AND p.scope = q.scope AND p.sub = q.sub GROUP BY ALL)
        SELECT profile.k, newest // 86400000000 AS d, profile.scope, profile.sub AS subtopology,
            profile.of_task AS task, profile.of_volume AS volume, node, n_stints,
            rate_p10, rate_p50, rate_p90, rate_mean, make_timestamptz(newest) AS updated,
            exp((n_stints * m + pull * pool) / (n_stints + pull)) AS rate_learned
        FROM profile JOIN kin USING (k, scope, sub)
        WHERE kin.of_task IS NOT DISTINCT FROM profile.of_task
            AND kin.of_volume IS NOT DISTINCT FROM profile.of_volume""",
    "g_convergence_daily": CONVERGENCE,
    "g_hold_blame": f"""
        WITH pieces AS (
            SELECT *, b - a AS span, verdict = 'Hold' AND coalesce(hold_id, '') = '' AS plain
            FROM {_split("decided", "k, verdict, desired, hold_id, reason, blocking, blocking_count, eta_kind")}),
        marked AS (
            SELECT *, coalesce(lag(plain) OVER w AND lag(desired) OVER w = desired, false) AS same FROM pieces
            WINDOW w AS (PARTITION BY k, d ORDER BY a)),
        looks AS (
            SELECT *, greatest(coalesce(blocking_count, 0), coalesce(len(blocking), 0)) AS m,
                if(plain, 'nameless '
                    || count(*) FILTER (NOT same) OVER (PARTITION BY k, d ORDER BY a), hold_id) AS hold
            FROM marked),
        held AS (SELECT * FROM looks WHERE verdict = 'Hold' OR coalesce(hold_id, '') <> ''),
        named AS (SELECT k, hold, d, max(a) AS last FROM held WHERE len(blocking) > 0 GROUP BY ALL),
        blame AS (
            SELECT k, d, hold, reason, blocking[i].task AS task, blocking[i].ordinal AS ordinal,
                least(span, 300e6) / m / 1e6 AS s, if(m = 1, s, 0) AS sole, i = 1 AND a = last AS critical,
                s * (eta_kind = 'NEVER')::INT AS stuck
            FROM (SELECT *, unnest(range(1, len(blocking) + 1)) AS i FROM held LEFT JOIN named USING (k, hold, d))
            UNION ALL
            SELECT k, d, hold, reason, NULL, NULL, least(span, 300e6) / 1e6
                * if(m = 0, 1, (m - coalesce(len(blocking), 0)) / m) AS s, 0, false, s * (eta_kind = 'NEVER')::INT
            FROM held WHERE m = 0 OR m > coalesce(len(blocking), 0)
            UNION ALL
            SELECT k, d, hold, 'Unrecorded', NULL, NULL, (span - 300e6) / 1e6, 0, false,
                0 * (eta_kind = 'NEVER')::INT FROM held WHERE span > 300e6)
        SELECT k, d, reason, task, ordinal, sum(s) AS blame_s, sum(sole) AS sole_s,
            sum(stuck) AS stuck_s,
            count(DISTINCT hold) FILTER (critical) AS critical_n, count(DISTINCT hold) AS holds
        FROM blame GROUP BY ALL""",
    "g_skew_daily": f"""
        WITH known AS (SELECT k, t, first_value(if(len(stateful_tasks) > 0, stateful_tasks, NULL) IGNORE NULLS) OVER (
                PARTITION BY k ORDER BY t DESC, recorder DESC, seq DESC
                ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS tasks FROM b_config),
        stateful AS (SELECT * FROM known UNION ALL
            SELECT k, -1, if(len(arg_min(stateful_tasks, t)) > 0, arg_min(stateful_tasks, t), NULL)
            FROM b_config GROUP BY k),
        loads AS (
            SELECT l.k, d, a, b, list_transform(holders, lambda h: if(len(s.tasks) > 0,
                    len(list_intersect(h.active, s.tasks)), len(h.active))) AS n,
                list_transform(holders, lambda h: greatest(h.threads, 1)) AS w
            FROM {_split("layout", "k, holders")} l
                ASOF LEFT JOIN stateful s ON l.k = s.k AND l.b > s.t),
        told AS (
            SELECT *, list_sum(n) AS total, list_transform(list_zip(n, w), lambda z: ceil(z[1] / z[2])) AS x,
                ceil(total / list_sum(w)) AS best,
                list_sort(n) AS o,
                len(n) AS m, (b - a) / 1e6 AS s FROM loads),
        judged AS (
            SELECT *, list_max(n) / total AS share, list_max(x) / best AS imb,
                list_sum(list_transform(range(1, m + 1), lambda i: (2 * i - m - 1) * o[i])) / (m * total) AS gini
            FROM told WHERE total > 0)
        SELECT k, d, sum(share * s) / sum(s) AS max_share, sum(imb * s) / sum(s) AS imbalance,
            sum(gini * s) / sum(s) AS gini, sum(s) AS seen_s, sum(if(imb > 1.5, s, 0)) AS bad_s
                FROM judged GROUP BY ALL""",
    "g_autoscaler_daily": f"""
        WITH pairs AS (
            SELECT *, t // {DAY} AS d, lag(direction) OVER w <> direction AND t - lag(t) OVER w <= 3600e6 AS turned,
                abs(new - old) >= abs(lag(new - old) OVER w) AS whole,
                t_conv IS NULL AND t_next = t_stop AND lead(direction) OVER w <> direction AS wasted
            FROM edge WINDOW w AS (PARTITION BY k ORDER BY t, seq)),
        counts AS (
            SELECT k, d, count(*) AS events, count(*) FILTER (turned) AS reversals,
                count(*) FILTER (turned AND whole) AS flap_pairs, count(*) FILTER (wasted) AS wasted_events,
                coalesce(sum(slots) FILTER (wasted), 0) AS wasted_slots FROM pairs GROUP BY ALL),
        hours AS (
            SELECT k, d, sum(actual * (b - a)) / 3600e6 AS replica_h,
                sum(greatest(granted - desired, 0) * (b - a)) / 3600e6 AS held_replica_h
            FROM {_split("decided", "k, actual, granted, desired")} GROUP BY ALL),
        limits AS (
            SELECT k, d, sum((b - a) * (cannot_act <> '')::INT) / 1e6 AS cannot_act_s,
                sum((b - a) * (limited_by = 'TooFewReplicas')::INT) / 1e6 AS below_min_s,
                sum((b - a) * (limited_by = 'TooManyReplicas')::INT) / 1e6 AS above_max_s
            FROM {_split("scaler", "k, aims_at, cannot_act, limited_by")} WHERE aims_at = 'StreamApp' GROUP BY ALL)
        SELECT k, d, coalesce(events, 0) AS events, coalesce(reversals, 0) AS reversals,
            coalesce(flap_pairs, 0) AS flap_pairs, coalesce(wasted_events, 0) AS wasted_events,
            coalesce(wasted_slots, 0) AS wasted_slots, replica_h, held_replica_h,
            cannot_act_s, below_min_s, above_max_s
        FROM app_day LEFT JOIN counts USING (k, d) LEFT JOIN hours USING (k, d) LEFT JOIN limits USING (k, d)""",
    "g_raise": f"""
        WITH ups AS (
            SELECT *, t_conv AS z, (SELECT max(t_last) FROM app_day a WHERE a.k = e.k AND a.d - e.t // {DAY} IN (0, 1))
                AS last FROM ended e WHERE direction = 'up' AND t_conv IS NOT NULL),
        near AS (
            SELECT u.*, s.t AS st, {{'t': s.t, 'n': s.slots, 'm': s.tasks}} AS p FROM ups u LEFT JOIN b_changelogs s
                ON s.k = u.k AND s.t // {DAY} BETWEEN u.t // {DAY} - 1 AND u.z // {DAY} + 1),
        told AS (
            SELECT k, t, seq, actor, old, new, z, t_next, last,
                coalesce(max(p) FILTER (st <= t - 600e6), max(p) FILTER (st <= t)) AS b0,
                min(p) FILTER (st BETWEEN t AND z) AS b1, max(p) FILTER (st BETWEEN t AND z) AS a0,
                min(p) FILTER (st >= z + 600e6) AS a1, min(st) FILTER (st >= t_next) AS turn
            FROM near GROUP BY ALL)
        SELECT k, t // {DAY} AS d, make_timestamptz(t) AS t_event, actor, old AS from_replicas,
            new AS to_replicas, (new - old) * greatest(least(t_next, last) - z, 0) / 3600e6 AS pod_h,
            if(b0.m = b1.m AND b1.n >= b0.n AND b1.t > b0.t, 1e6 * (b1.n - b0.n) / (b1.t - b0.t), NULL) AS rate_before,
            if(a0.m = a1.m AND a1.n >= a0.n AND a1.t > a0.t AND coalesce(a1.t <= turn, true),
                1e6 * (a1.n - a0.n) / (a1.t - a0.t), NULL) AS rate_after
        FROM told""",
    "g_volume_daily": f"""
        SELECT k, d, volume, max(ordinal) AS ordinal, max(state_bytes) AS state_bytes, min(free_bytes) AS free_bytes,
            max(requested_bytes) AS requested_bytes
        FROM {_split("mounted", "k, volume, ordinal, state_bytes, free_bytes, requested_bytes")} GROUP BY ALL""",
    "g_churn_daily": f"""
        WITH told AS (
            SELECT *, lag(process_id) OVER (PARTITION BY k, ordinal, volume ORDER BY t, seq) AS old FROM alive
            WHERE process_id <> '' AND volume <> ''),
        held AS (SELECT k, d, unnest(holders) AS h FROM {_split("layout", "k, holders")})
        SELECT k, d, (SELECT count(*) FROM rebalance r WHERE r.k = a.k AND r.t // {DAY} = a.d) AS rebalances,
            (SELECT coalesce(sum(moved), 0) FROM rebalance r WHERE r.k = a.k AND r.t // {DAY} = a.d) AS tasks_moved,
            (SELECT coalesce(sum(back), 0) FROM rebalance r WHERE r.k = a.k AND r.t // {DAY} = a.d) AS moved_back,
            (SELECT count(*) FROM told p WHERE p.k = a.k AND p.t // {DAY} = a.d AND old <> process_id) AS pid_changes,
            (SELECT count(DISTINCT h.process_id) FILTER (h.ordinal IS NULL) FROM held
                WHERE held.k = a.k AND held.d = a.d) AS ghost_members
        FROM app_day a""",
}


def recompute(root: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of every table of gold, by the days and applications of `reading.records`."""
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    for table in TABLES.values():
        lines = files(root, table)
        if not lines:
            duck.execute(f"CREATE TABLE {table} (k VARCHAR, t BIGINT)")
            continue
        # `to_micros` needs no zone: the files say UTC.
        duck.execute(
            f"CREATE TABLE {table} AS SELECT *, concat_ws('/', cluster, namespace, app, uid) AS k, epoch_us(ts) AS t "
            f"FROM read_parquet(?, hive_partitioning = false) WHERE app <> '' OR '{table}' = 'b_recorder'",
            [lines],
        )
    for script in (LINES, SAMPLES, STEPS, OUTAGES, DECISIONS):
        duck.execute(script)
    found = {}
    for table, text in GOLD.items():
        found[table] = duck.sql(text).to_arrow_table().to_pylist()
    return found
