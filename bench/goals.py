"""The goals of the bench, checked by a pure function of the figures of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any

from bench.accounting import without_broker
from bench.latency import Followed
from bench.patterns import IDLE, TOGETHER, idle, together
from bench.plan import COMMITS
from bench.rounds import Figure, middle, ratio
from bench.routed import GOALS as MULTIPLES
from bench.routed import multiples
from bench.small import CPU_GOALS, TITLES, WARM

LAST = 100  # commits that are compared: the last of them with those from 101 to 200
MANY_COMMITS = 10_000  # from so many on, a run has goals of its own


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal: its name, the measured value (None if it was not measured), and its bound."""

    says: str
    value: float | None
    bound: float
    is_least: bool = False
    unit: str = "x"

    @property
    def verdict(self) -> str:
        """`met`, `missed`, or `not measured`."""
        if self.value is None:
            return "not measured"
        is_met = self.value >= self.bound if self.is_least else self.value <= self.bound
        return "met" if is_met else "missed"

    @property
    def wanted(self) -> str:
        """The bound as text."""
        return f"{'≥' if self.is_least else '≤'} {self._told(self.bound)}"

    @property
    def found(self) -> str:
        """The value as text."""
        return "–" if self.value is None else self._told(self.value)

    def _told(self, value: float) -> str:
        if self.unit == "%":
            return f"{value:.1%}"
        digits = 0 if self.unit == "MB" else 2
        return f"{value:.{digits}f} {self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The figures of a run, without parts that were not chosen."""

    races: Mapping[str, Sequence[Figure]] = field(default_factory=dict)
    fast: Followed | None = None
    usual: Followed | None = None
    commits: Mapping[str, Any] | None = None
    many: Mapping[str, Any] | None = None
    fresh: Mapping[str, Any] | None = None
    small: Mapping[str, Any] | None = None
    routes: Mapping[str, Any] | None = None
    patterns: Mapping[str, Any] | None = None
    partitions: Mapping[str, Any] | None = None
    upserts: Mapping[str, Any] | None = None
    aging: Sequence[Mapping[str, Any]] = ()
    requests: Sequence[Mapping[str, Any]] = ()


def goals(results: Results) -> list[Goal]:
    """Yield the goals in the order in which they were set."""
    return [
        *_cost(results),
        *_formats(results),
        *_speed(results),
        *_following(results),
        *_age(results),
        *_great_age(results),
        *_many(results),
        *_fresh(results),
        *_small(results),
        *_routes(results),
        *_patterns(results),
        *_partitions(results),
        *_upserts(results),
    ]


def _cost(results: Results) -> Iterator[Goal]:
    orders = results.races.get("nested_avro", ())
    yield Goal(
        "nested Avro orders, CPU: Frazil in the spike's columns / spike",
        ratio(orders, "ours_as_spike", "spike", "cpu"),
        1.0,
    )
    yield Goal(
        "nested Avro orders, CPU: Frazil in the default layout / spike", ratio(orders, "ours", "spike", "cpu"), 1.25
    )
    for way, shape, most in (
        ("filtered", "a condition", 1.1),
        ("selected", "ten columns", 1.1),
        ("masked", "an HMAC", 1.3),
    ):
        yield Goal(f"nested Avro orders, CPU: with {shape} / without", ratio(orders, way, "ours", "cpu"), most)


def _formats(results: Results) -> Iterator[Goal]:
    """Yield the goal of Protobuf. Both topics have as many rows: a smaller landing pays more for compilation."""
    avro, protobuf = (
        middle(results.races.get(shape, ()), "ours", "cpu_a_million") for shape in ("nested_avro", "nested_protobuf")
    )
    yield Goal("nested orders, CPU: Protobuf / Avro", protobuf and avro and protobuf / avro, 1.4)


def _speed(results: Results) -> Iterator[Goal]:
    for shape, says, least in (("light_json", "light rows", 12.0), ("nested_json", "nested JSON orders", 5.0)):
        found = results.races.get(shape, ())
        yield Goal(f"{says}, wall: N0 / Frazil", ratio(found, "n0", "ours", "wall"), least, is_least=True)
        yield Goal(f"{says}, wall: N1 / Frazil", ratio(found, "n1", "ours", "wall"), 2.5, is_least=True)


def _following(results: Results) -> Iterator[Goal]:
    fast, usual = results.fast, results.usual
    yield Goal(
        "one record, produced to visible, asked every 0.2 s: median", fast and fast.median_seconds, 1.5, unit="s"
    )
    yield Goal("idle --follow, share of a core", usual and usual.idle_share, 0.03, unit="%")
    yield Goal("... one record, produced to visible: slowest", usual and max(usual.seconds), 5.0, unit="s")


def _age(results: Results) -> Iterator[Goal]:
    found = results.commits
    count = len(found["commits"]) if found else COMMITS
    asked = (
        ("commit time", "seconds"),
        ("planning time", "java_planning_seconds"),
        ("metadata size", "metadata_bytes"),
    )
    for says, what in asked:
        yield Goal(f"{count:,} commits, {says}: last {LAST} / commits 101-200", _aged(found, what), 1.2)


def _great_age(results: Results) -> Iterator[Goal]:
    """Yield the goals of a table with very many commits; none if the run made fewer."""
    found = results.commits
    if found is None or (count := len(found["commits"])) < MANY_COMMITS:
        return
    late, early = median(found["commits"][-LAST:]), median(found["commits"][400:500])
    looks = [look for look in found["looks"] if look["commit"] > count - LAST]
    yield Goal(f"{count:,} commits, commit time: last {LAST} / commits 401-500", late / early, 1.1)
    yield Goal("... metadata at the end", looks[-1]["metadata_bytes"] / 1e6, 20.0, unit="MB")
    planning = median(look["java_planning_seconds"] for look in looks)
    yield Goal(f"... planning, median of the last {LAST}", planning * 1000, 60.0, unit="ms")


def _aged(found: Mapping[str, Any] | None, what: str) -> float | None:
    """Return the ratio of the median of the last commits to that of the second hundred; None with fewer than 300."""
    if found is None or len(found["commits"]) < 3 * LAST:
        return None
    count = len(found["commits"])
    looks = [(n + 1, s) for n, s in enumerate(found["commits"])]
    if what != "seconds":
        looks = [(look["commit"], look[what]) for look in found["looks"]]
    early = [value for number, value in looks if LAST < number <= 2 * LAST]
    late = [value for number, value in looks if number > count - LAST]
    return median(late) / median(early)


def _many(results: Results) -> Iterator[Goal]:
    peaks = [figure.peak_rss_mb["python"] for race in results.races.values() for figure in race if figure.way == "ours"]
    peaks += [followed.peak_rss_mb["python"] for followed in (results.fast, results.usual) if followed]
    peaks += [
        found["peak_rss_mb"]["python"]
        for found in (results.commits, results.many, results.upserts, *results.aging)
        if found
    ]
    yield Goal("the driver's Python, peak memory", max(peaks) if peaks else None, 300.0, unit="MB")
    value = None
    if results.many:
        walls = {
            way: median(m["wall"] for m in results.many["measured"] if m["way"] == way) for way in ("together", "alone")
        }
        value = walls["together"] / walls["alone"]
    yield Goal("50 small pipelines, wall: together / one after another", value, 1 / 3)


def _fresh(results: Results) -> Iterator[Goal]:
    found = results.fresh
    yield Goal("`frazil run` of a small topic from the shell: median", found and median(found["shell"]), 9.0, unit="s")
    first = found and median(found["first"])
    yield Goal("the first 200,000 nested Avro orders of a session: median", first, 5.0, unit="CPU-s")


def _small(results: Results) -> Iterator[Goal]:
    """Yield the goals of small batches; none if they were not measured."""
    found = results.small
    if not found:
        return
    kinds = {one["kind"]: one["cpu"] for one in found["kinds"]}
    for kind, (first, later) in CPU_GOALS.items():
        if first is not None:
            yield Goal(f"first small batch of a process, {TITLES[kind]}", kinds[kind][0], first, unit="CPU-s")
        yield Goal(f"a later one, {TITLES[kind]}: mean", mean(kinds[kind][WARM:]), later, unit="CPU-s")
    between, cpu_a_minute = (found["followed"][name] for name in ("seconds_between", "cpu_a_minute"))
    yield Goal("eight keyed topics: between two commits of a table", between, 5.0, unit="s")
    yield Goal("eight keyed topics: CPU a minute", cpu_a_minute, 30.0, unit="CPU-s")


def _routes(results: Results) -> Iterator[Goal]:
    """Yield the goals of one topic as several tables; none if they were not measured."""
    if results.routes:
        for way, times in multiples(results.routes).items():
            yield Goal(f"one topic as {way} tables, CPU: by that of one table", times, MULTIPLES[way])


def _patterns(results: Results) -> Iterator[Goal]:
    """Yield the goals of the topics of one pattern; none if they were not measured."""
    if found := results.patterns:
        count = found["topics"]
        yield Goal(f"{count} topics of a pattern, wall: together / one after another", together(found), TOGETHER)
        yield Goal(f"{count} topics of a pattern, followed without records", idle(found), IDLE, unit="cores")


def _partitions(results: Results) -> Iterator[Goal]:
    found = results.partitions
    batches = found["batches"] if found else []
    yield Goal("1,000 partitions, CPU of a large topic: 1,000 / 4 partitions", _of_few(found), 1.3)
    first, later = (batches[0]["wall"], [batch["wall"] for batch in batches[1:]]) if batches else (None, [])
    yield Goal("... a record a partition and batch, wall: the first", first, 30.0, unit="s")
    yield Goal("... the slowest of the others", max(later, default=None), 5.0, unit="s")
    yield Goal("... most data files of a batch", max((b["files"] for b in batches), default=None), 20.0, unit="")


def _upserts(results: Results) -> Iterator[Goal]:
    batches = results.upserts["batches"] if results.upserts else []
    for rows, faster, smaller in ((1, 2.2, 25.0), (5, 8.0, 100.0), (20, 20.0, 500.0)):
        for version in (2, 3):
            mine = [one for one in batches if (one["of"], one["version"]) == (rows * 1_000_000, version)]
            says = f"30,000 changes of {rows} M rows, v{version}: copy-on-write MERGE / Frazil"
            yield Goal(f"{says}, wall", _merged(mine, "wall"), faster, is_least=True)
            yield Goal(f"{says}, bytes", _merged(mine, "bytes"), smaller, is_least=True)
            if rows == 5:
                says = f"30,000 changes of {rows} M rows, v{version}: staging and MERGE / Frazil"
                yield Goal(f"{says}, wall", _merged(mine, "wall", "staged"), 12.0, is_least=True)
    for version in (2, 3):
        few, many = (_indexed(batches, rows * 1_000_000, version) for rows in (1, 20))
        yield Goal(f"30,000 changes by an index, v{version}, wall: 20 M / 1 M rows", many and few and many / few, 1.3)
    loads = results.races.get("keyed_avro", ())
    yield Goal("a topic of new keys, wall: current state / append", ratio(loads, "state", "ours", "wall"), 1.3)
    changes = results.races.get("changes_avro", ())
    value = ratio(changes, "state", "changelog", "wall")
    yield Goal("Debezium's changes, wall: current state / every change", value, 1.6)
    for version in (2, 3):
        found = next((one for one in results.aging if one["version"] == version), None)
        says = f"after batches of changes, v{version}, read by"
        for reader in ("duckdb", "pyiceberg"):
            yield Goal(f"{says} {reader}: aged / fresh", found and found["aged"][reader] / found["fresh"][reader], 1.3)
        planned = found and found["aged"]["planning"] / found["fresh"]["planning"]
        yield Goal(f"after batches of changes, v{version}, planned: aged / fresh", planned, 1.2)
        commits = found["commits"] if found else []
        later = median(commits[-10:]) / median(commits[5:15]) if len(commits) >= 25 else None
        yield Goal(f"batches of changes, v{version}, search and commit: last 10 / sixth to fifteenth", later, 1.2)


def _merged(batches: Sequence[Mapping[str, Any]], what: str, by: str = "merge") -> float | None:
    """Return the median over the rounds of the ratio of a way, `MERGE` by default, to Frazil; None if none has both."""
    other, ours = ({b["round"]: b[what] for b in batches if b["way"] == way} for way in (by, "ours"))
    ratios = [other[number] / ours[number] for number in ours if number in other]
    return median(ratios) if ratios else None


def counted(batches: Sequence[Mapping[str, Any]], way: str) -> list[Mapping[str, Any]]:
    """Return the batches of a way that count. With an index round 0 does not: the index had no commit to follow."""
    return [batch for batch in batches if batch["way"] == way and (way != "indexed" or batch["round"])]


def _indexed(batches: Sequence[Mapping[str, Any]], rows: int, version: int) -> float | None:
    """Return the median wall time of a batch with an index."""
    mine = [b["wall"] for b in counted(batches, "indexed") if (b["of"], b["version"]) == (rows, version)]
    return median(mine) if mine else None


def _of_few(found: Mapping[str, Any] | None) -> float | None:
    """Return the median over the rounds of the ratio of CPU of many partitions to few, without the broker's."""
    if not found:
        return None
    used = [without_broker(each["cpu"]) for each in found["landings"]]
    return median(many / few for few, many in zip(used[::2], used[1::2], strict=True))
