"""From bronze to silver to gold: what has changed, and no more.

Called by the command line. Silver and gold have a version each that names the runs of bronze it was built from; the
days whose runs differ are built again, with what reaches into them. What comes out equals what a build of all gives.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import reduce
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamapp.analytics.bronze.ingest import WRITERS, bronze
from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.gold import convergence, daily, downtime, raises
from streamapp.analytics.handovers import Handovers, handovers
from streamapp.analytics.incremental import Limits, differing, known_before, limits_in, reached
from streamapp.analytics.progress import Stages
from streamapp.analytics.silver import catch_up, lag, outages, states, steps
from streamapp.analytics.silver.episodes import Facts, episodes
from streamapp.analytics.tables.bronze_schemas import LINE, QUARANTINE, SAMPLE, TABLES
from streamapp.analytics.tables.derived_schemas import GOLD, KEY, SILVER
from streamapp.analytics.tables.store import Days, Store, Version, merged, new_run, stale_days

DEFINITIONS: Final = 8
"""Rises with each change of what a column means or how it is computed: all of silver and gold is then built again."""
SAMPLES: Final = TABLES[SAMPLE]
MOST_AT_HAND: Final = 8
"""Days whose copies, some hundred bytes each, are held in every task's memory."""
DAILY: Final = ("s_seen", "s_learner_sample")
"""Tables of which each day needs its own lines only."""
WHOLE: Final = ("s_config", "g_restore_profile")
"""Tables whose rows are not of one day, and are kept or computed all together."""


@dataclass(frozen=True, slots=True)
class Built:
    """What a build did."""

    days: tuple[str, ...]
    """Days that were built again; none where all was up to date."""
    silver: Version
    gold: Version


@dataclass(slots=True)
class _Draft:
    """A version in the making: what is written so far of one layer."""

    spark: SparkSession
    store: Store
    version: Version
    run: str = field(default_factory=new_run)
    settled: str = ""
    """Days before it stay as they are in the tables that are computed as a whole: what they were made of is gone."""

    def read(self, table: str, days: set[str] | None = None) -> DataFrame:
        return self.store.read(self.spark, self.version, table, days)

    def put(self, frames: Mapping[str, tuple[Callable[[], DataFrame], set[str] | None]]) -> None:
        """Write tables, a few at a time: for each what computes it, and the days it replaces (none: all)."""

        def one(table: str) -> tuple[str, dict[str, tuple[str, ...]], dict[str, int]]:
            compute, days = frames[table]
            settled = "" if table in WHOLE else self.settled
            wanted = F.col("dt") >= settled if days is None else F.col("dt").isin(*days)
            written, rows = self.store.write(compute().where(wanted).coalesce(_files(table)), table, self.run)
            live = self.version.tables.get(table, {})
            stays = {day: runs for day, runs in live.items() if (day < settled if days is None else day not in days)}
            return table, merged(stays.items(), written.items()), rows

        with ThreadPoolExecutor(WRITERS) as pool:
            for table, days, rows in list(pool.map(one, frames)):
                self.version = self.version.with_table(table, days, rows)


@contextmanager
def _kept(frame: DataFrame) -> Iterator[DataFrame]:
    """Rows that several tables are computed from: computed once, and again only if a worker is lost with them."""
    kept = frame.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def _files(table: str) -> int:
    """Files a run writes of a table at most: the large ones keep both halves of a small machine at work."""
    return 8 if table in DAILY else 1


def silver(root: Path) -> Store:
    """The store of silver."""
    return Store(root, "silver", SILVER)


def gold(root: Path) -> Store:
    """The store of gold."""
    return Store(root, "gold", GOLD)


def require_bronze(root: Path) -> Version:
    """The newest version of bronze.

    Raises:
        AnalyticsError: there is none, or no line in it.
    """
    version = bronze(root).current()
    if not version.days(QUARANTINE):
        raise AnalyticsError(str(root), "there is nothing to build from", "run `streamapp-analytics ingest` first")
    return version


def _shift(day: str, by: int) -> str:
    return (date.fromisoformat(day) + timedelta(days=by)).isoformat()


@dataclass(slots=True)
class Build:
    """One run of the build."""

    spark: SparkSession
    root: Path
    stages: Stages
    full: bool = False
    """Build all again, whatever is there."""

    def run(self) -> Built:
        """Bring silver and gold up to what bronze holds.

        Raises:
            AnalyticsError: there is no bronze, or another run was faster.
        """
        source = _Draft(self.spark, bronze(self.root), require_bronze(self.root))
        days = source.version.days(QUARANTINE)
        new_silver, silver_days = self._silver(source, days)
        new_gold, gold_days = self._gold(source, days, new_silver)
        return Built(tuple(sorted(silver_days | gold_days)), new_silver, new_gold)

    def _stale(self, version: Version, source: _Draft, days: Days) -> tuple[Version, set[str]]:
        """What of a version can stay, and the days to be built; what bronze has removed can be built no more."""
        kept_from = source.version.kept_from
        if self.full or version.definitions != DEFINITIONS:
            return version.only(lambda _, day: day < kept_from), set(days)
        return version, stale_days(days, version, kept_from)

    def _silver(self, source: _Draft, days: Days) -> tuple[Version, set[str]]:
        store = silver(self.root)
        kept, changed = self._stale(store.current(), source, days)
        if not changed:
            return kept, set()
        draft = _Draft(self.spark, store, kept)
        with self.stages.stage("silver: configuration"):
            before, known = draft.read("s_config"), known_before(draft.read("s_seen"), min(changed))
            draft.put({"s_config": (lambda: self._with_day(lag.config(source.read("b_config"))), None)})
            after = draft.read("s_config")
            apps = differing(before, after).persist()
            limits = Limits(limits_in(before, apps), limits_in(after, apps), known)
            changed = reached(changed, set(days), limits)
        with self.stages.stage("silver: leaders"):
            since = _shift(min(changed), -2)
            led = handovers(source.store, source.version, {day for day in days if day >= since})
            changed = led.reached(changed) & set(days)
        _Silver(source, draft, changed, set(days), self.stages, led).write()
        with self.stages.stage("silver: commit"):
            version = store.commit(replace(draft.version, built_from=days, definitions=DEFINITIONS))
        return version, changed

    @staticmethod
    def _with_day(frame: DataFrame) -> DataFrame:
        return frame.withColumn("dt", F.date_format("valid_from", "yyyy-MM-dd"))

    def _gold(self, source: _Draft, days: Days, made: Version) -> tuple[Version, set[str]]:
        store = gold(self.root)
        kept, changed = self._stale(store.current(), source, days)
        if not changed:
            return kept, set()
        # The first day that silver keeps lost what lies before it; its figures were made when that was there.
        settled = _shift(made.kept_from, 1) if made.kept_from else ""
        draft = _Draft(self.spark, store, kept, settled=min(settled, source.version.kept_from))
        base = _Draft(self.spark, silver(self.root), made)
        with self.stages.stage("gold: figures by day"):
            draft.put({table: (compute, None) for table, compute in _figures(base).items()})
        with self.stages.stage("gold: commit"):
            version = store.commit(replace(draft.version, built_from=days, definitions=DEFINITIONS))
            store.publish(version)
        return version, changed


def _figures(base: _Draft) -> dict[str, Callable[[], DataFrame]]:
    read = base.read
    return {
        "g_restore_profile": lambda: _updated(
            convergence.restore_profile(read("s_learner_stint"), read("s_pod_interval"))
        ),
        "g_convergence_daily": lambda: convergence.convergence_daily(read("s_scale_episode")),
        "g_downtime_daily": lambda: downtime.downtime_daily(read("s_outage"), read("s_seen"), read("s_config")),
        "g_hold_blame": lambda: convergence.hold_blame(read("s_hold_interval")),
        "g_skew_daily": lambda: daily.skew_daily(read("s_assignment_interval")),
        "g_autoscaler_daily": lambda: daily.autoscaler_daily(
            read("s_scale_episode"), read("s_decision_interval"), read("s_autoscaler_interval"), read("s_seen")
        ),
        "g_raise": lambda: raises.raises(read("s_scale_episode"), read("s_changelog_sample"), read("s_seen")),
        "g_volume_daily": lambda: daily.volume_daily(read("s_pod_interval")),
        "g_churn_daily": lambda: daily.churn_daily(
            read("s_rebalance"), read("s_pod_interval"), read("s_assignment_interval"), read("s_seen")
        ),
    }


def _updated(frame: DataFrame) -> DataFrame:
    return frame.withColumn("dt", F.date_format("updated", "yyyy-MM-dd"))


@dataclass(slots=True)
class _Silver:
    """The tables of silver, in the order in which one needs the other."""

    source: _Draft
    draft: _Draft
    changed: set[str]
    days: set[str]
    stages: Stages
    led: Handovers

    def _lines(self, table: str, days: set[str] | None = None) -> DataFrame:
        """Lines of bronze, in the order of the leaders that wrote them."""
        if not self.led.are_behind:
            return self.source.read(table, days)
        wider = None if days is None else {*days, *(_shift(day, -1) for day in days)}
        lines = self.led.in_order(self.source.read(table, wider))
        return lines if days is None else lines.where(F.col("dt").isin(*days))

    def write(self) -> None:
        """All but the configuration."""
        # The day before a changed one ends at midnight now, or no longer; days after it begin as it ended.
        # What bronze has removed stays: its last states are carried on.
        first = max(_shift(min(self.changed), -1), self.source.version.kept_from)
        later = {day for day in self.days if day >= first}
        with self.stages.stage("silver: samples"):
            self._daily()
        with self.stages.stage("silver: states"):
            self._states(first, later)
        with self.stages.stage("silver: learners and holds"):
            self._sessions(first, later)
        with self.stages.stage("silver: steps"):
            self._episodes(later)
            self._outages(first, later)

    def _daily(self) -> None:
        lines = self._lines
        others = [lines(table, self.changed).select(*KEY, "ts", "dt") for table in TABLES.values() if table != SAMPLES]
        samples = lines(SAMPLES, self.changed)
        limits = lag.limits(self.draft.read("s_config"))
        with _kept(lag.copies(lag.judged(samples, limits))) as copies:
            self.draft.put(
                {
                    "s_learner_sample": (lambda: lag.judged(self._chosen(samples, copies), limits), self.changed),
                    "s_seen": (
                        lambda: lag.seen(samples, reduce(DataFrame.unionByName, others)),
                        self.changed,
                    ),
                }
            )

    def _chosen(self, samples: DataFrame, copies: DataFrame) -> DataFrame:
        """Each task goes through its samples with all copies at hand, as long as these are of few days."""
        return lag.learner_samples(samples, F.broadcast(copies) if len(self.changed) <= MOST_AT_HAND else copies)

    def _states(self, first: str, later: set[str]) -> None:
        seen = self.draft.read("s_seen")

        def state(source: str, table: str, by: tuple[str, ...] = ()) -> Callable[[], DataFrame]:
            own = [name for name in SILVER[table].names if name not in {"t_start", "t_end"}]
            known = {field.name for field in LINE}
            lines = self._lines(source, later)
            if source == "b_decision":
                lines = lines.withColumn("furthest_lag", steps.furthest_lag())
            lines = lines.select(*own, *sorted(known - {*own, "v"}))
            carried = self.draft.read(table, {_shift(first, -1)}).select(*own, "t_end")
            return lambda: states.pieces(lines, carried, seen, by)

        self.draft.put(
            {
                "s_decision_interval": (state("b_decision", "s_decision_interval"), later),
                "s_autoscaler_interval": (state("b_autoscaler", "s_autoscaler_interval", ("name", "aims_at")), later),
                "s_layout_interval": (state("b_group", "s_layout_interval"), later),
                "s_pod_interval": (state("b_pod", "s_pod_interval", ("ordinal",)), later),
                "s_changelog_sample": (
                    lambda: self._lines("b_changelogs", later).select(*SILVER["s_changelog_sample"].names, "dt"),
                    later,
                ),
            }
        )

    def _sessions(self, first: str, later: set[str]) -> None:
        back = self._start_of_stints(first)
        since = {day for day in {*self.days, *self.draft.version.tables["s_learner_sample"]} if day >= back}
        samples = self.draft.read("s_learner_sample", since)
        seen, config = self.draft.read("s_seen"), self.draft.read("s_config")
        context = {*later, _shift(first, -1)}
        layouts = self.draft.read("s_layout_interval", later)
        self.draft.put(
            {
                "s_learner_stint": (lambda: catch_up.stints(samples, seen), since),
                "s_downtime": (
                    lambda: catch_up.downtime(
                        self.draft.read("s_learner_sample", later),
                        self._lines("b_step_closed", later),
                        self._lines("b_gap", later),
                        self.led.frame(self.source.spark),
                    ),
                    later,
                ),
                "s_hold_interval": (
                    lambda: steps.holds(self.draft.read("s_decision_interval", later)),
                    later,
                ),
                "s_assignment_interval": (lambda: states.assignments(layouts, config), later),
                "s_rebalance": (
                    lambda: states.rebalances(self.draft.read("s_layout_interval", context)),
                    later,
                ),
            }
        )

    def _start_of_stints(self, first: str) -> str:
        """The first day, at or before this one, into which no time behind reaches from the day before."""
        stints = self.draft.read("s_learner_stint")
        while True:
            reaching = stints.where((F.col("t_start") < F.lit(first).cast("timestamp")) & (F.to_date("t_end") >= first))
            found = reaching.agg(F.min("dt")).first()
            if found is None or found[0] is None:
                return first
            first = found[0]

    def _marks(self, later: set[str]) -> DataFrame:
        lines = self._lines
        return steps.losses(lines("b_recorder", later), lines("b_decision", later))

    def _episodes(self, later: set[str]) -> None:
        lines = self._lines
        changes = steps.events(lines("b_scale")).where(F.col("dt").isin(*later))
        events = steps.bounded(changes, self.draft.read("s_seen", later), lines("b_decision", later))
        facts = Facts(
            pods=lines("b_pod", later),
            groups=lines("b_group", later),
            stints=self.draft.read("s_learner_stint"),
            rebalances=self.draft.read("s_rebalance", later),
            steps=lines("b_step", later),
            downtime=self.draft.read("s_downtime", later),
            marks=self._marks(later),
        )
        # Whatever happened meanwhile is looked up for each event: they are few, and found once.
        with _kept(events) as kept:
            self.draft.put({"s_scale_episode": (lambda: episodes(kept, facts), later)})

    def _outages(self, first: str, later: set[str]) -> None:
        read, context = self.draft.read, {*later, _shift(first, -1)}
        changes = outages.pod_changes(read("s_pod_interval", context))
        why = outages.causes(changes, read("s_scale_episode", context), read("s_rebalance", context))
        self.draft.put({"s_outage": (lambda: outages.outages(read("s_downtime", context), why, read("s_seen")), later)})
