"""Jobs of any shape, from a seed, in which one part is too slow: it is named, whatever waits for it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from refimpl.cluster import Bottleneck, BottleneckKind
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Costs, PressureWatch
from refimpl.job import DataStream, StreamEnvironment
from refimpl.state import MemoryStore

NUM_RECORDS = 20_000
SETTLED_MS, WATCHED_MS = 150, 150
SOURCE_MS, WORK_MS, SLOW_MS = 0.3, 0.1, 2.0
INNOCENT_MS = 3.0  # busy more than half of the time with what the link lets pass, and quicker than it
LATE_MS = 5_000.0
LINK_BYTES_PER_MS = 4.0


@dataclass
class Shape:
    """A job of sources, steps, branches and unions; `paths` is how many copies of a record come to each part."""

    seed: int
    parallelism: int = 1
    costs: dict[str, float] = field(default_factory=dict)
    paths: dict[str, int] = field(default_factory=dict)

    def job(self) -> StreamEnvironment:
        choice = random.Random(f"shape {self.seed}")
        config = Config(source_batch=1, buffer_timeout_ms=0, segment_size_bytes=64, num_buffers=512)
        job = StreamEnvironment(config, parallelism=self.parallelism)
        streams: list[tuple[DataStream, int]] = []
        for number in range(choice.randint(1, 2)):
            name = f"source{number}"
            streams.append((job.from_collection(range(NUM_RECORDS), name=name), 1))
            self.costs[name] = SOURCE_MS
        read = set[int]()
        for number in range(choice.randint(2, 5)):
            chosen = choice.sample(range(len(streams)), min(len(streams), choice.randint(1, 2)))
            read.update(chosen)
            joined, paths = streams[chosen[0]]
            for other in chosen[1:]:
                joined, paths = joined.union(streams[other][0]), paths + streams[other][1]
            name = f"step{number}"
            streams.append((joined.rebalance().map(_same, name), paths))
            self._work(name, paths)
        for number in sorted(set(range(len(streams))) - read):
            name = f"sink{number}"
            streams[number][0].rebalance().sink(_ignore, name)
            self._work(name, streams[number][1])
        return job

    def _work(self, name: str, paths: int) -> None:
        self.paths[name] = paths
        self.costs[name] = WORK_MS / paths


@dataclass
class Rows:
    """A job put together row by row; `parallelism` is that of all of it, `config` what else it needs."""

    parallelism: int = 1
    config: dict[str, object] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    job: StreamEnvironment = field(init=False)

    def __post_init__(self) -> None:
        config = Config(source_batch=1, buffer_timeout_ms=0, segment_size_bytes=64, num_buffers=512, **self.config)  # type: ignore[arg-type]
        self.job = StreamEnvironment(config, self.parallelism)

    def source(self, name: str, cost_ms: float, group: str = "default") -> DataStream:
        self.costs[name] = cost_ms
        return self.job.from_collection(range(NUM_RECORDS), name=name).slot_sharing_group(group)

    def row(self, stream: DataStream, name: str, num: int, cost_ms: float, group: str = "default") -> DataStream:
        for number in range(num):
            self.costs[f"{name}{number}"] = cost_ms
            stream = stream.rebalance().map(_same, f"{name}{number}").slot_sharing_group(group)
        return stream


def linked(seed: int) -> Rows:
    """A row that crosses a slow link, and beside it a branch that does not, and may have much to do."""
    choice = random.Random(f"link {seed}")
    made = Rows(choice.choice([1, 1, 2]))
    source = made.source("source", SOURCE_MS, "near")
    near = made.row(source, "near", choice.randint(0, 2), WORK_MS, "near")
    made.row(near, "far", choice.randint(1, 3), WORK_MS).sink(_ignore)
    branch_of = near if choice.random() < 0.5 else source
    made.row(branch_of, "innocent", choice.randint(1, 2), choice.choice([WORK_MS, INNOCENT_MS]), "near")
    return made


def aligned(seed: int) -> Rows:
    """Two sources that meet, of which one is late with its barrier; behind, or beside, others read the fast one too."""
    choice = random.Random(f"barrier {seed}")
    made = Rows(config={"checkpoint_interval_ms": 100})
    source = made.source("fast", SOURCE_MS)
    fast = made.row(source, "before", choice.randint(0, 2), WORK_MS)
    late = made.row(made.source("late", LATE_MS), "slow", choice.randint(0, 2), WORK_MS)
    stream = made.row(fast.union(late), "meet", 1, WORK_MS / 2)
    stream = made.row(stream, "after", choice.randint(0, 2), WORK_MS / 2)
    if choice.random() < 0.6:
        stream = made.row(stream.union(choice.choice([source, fast])), "again", 1, WORK_MS / 3)
    stream.rebalance().sink(_ignore)
    if choice.random() < 0.6:
        made.row(source, "innocent", 2, WORK_MS)
    return made


def _same(value: object) -> object:
    return value


def _ignore(_value: object) -> None:
    """A sink's function."""


def found_in(job: StreamEnvironment, costs: dict[str, float]) -> tuple[str, Bottleneck]:
    """The vertex that is named, once the pressure has spread, and of what kind."""
    with Simulation(job, policy="timed", costs=Costs(costs), check_every=0) as run:
        watch = PressureWatch(run)
        for until_ms in (SETTLED_MS, SETTLED_MS + WATCHED_MS):
            watch.loads()
            while run.time_ms < until_ms:
                assert run.step() is not None, "the job was over too soon to be looked at"
        found = watch.bottleneck()
        names = {(each.vertex.id, each.subtask): each.name for each in run.graph.vertices}
        return names[found.place] if found.place is not None else "", found


@pytest.mark.sampled(one_in=10)
@pytest.mark.parametrize("seed", range(60))
def test_a_slow_vertex_is_named_in_a_job_of_any_shape(seed: int) -> None:
    shape = Shape(seed)
    job = shape.job()
    culprit = random.Random(f"culprit {seed}").choice(sorted(shape.paths))
    name, found = found_in(job, {**shape.costs, culprit: SLOW_MS / shape.paths[culprit]})
    assert (name, found.kind) == (f"{culprit}-0", BottleneckKind.SUBTASK), f"{seed=} {shape}"


@pytest.mark.sampled(one_in=10)
@pytest.mark.parametrize("seed", range(60, 100))
def test_a_slow_subtask_is_told_from_its_siblings_in_a_job_of_any_shape(seed: int) -> None:
    shape = Shape(seed, parallelism=2)
    job = shape.job()
    choice = random.Random(f"culprit {seed}")
    culprit, subtask = choice.choice(sorted(shape.paths)), choice.randrange(2)
    slow = {f"{culprit}-{subtask}": 2 * SLOW_MS / shape.paths[culprit]}
    name, found = found_in(job, {**shape.costs, **slow})
    assert (name, found.kind) == (f"{culprit}-{subtask}", BottleneckKind.SKEW), f"{seed=} {shape}"


@pytest.mark.sampled(one_in=10)
@pytest.mark.parametrize("seed", range(100, 120))
def test_where_nobody_is_slow_it_is_a_source_and_no_worker(seed: int) -> None:
    shape = Shape(seed)
    name, found = found_in(shape.job(), shape.costs)
    assert found.kind is BottleneckKind.SOURCE, f"{seed=} {shape}"
    assert name.startswith("source")


def watched(made: Rows, until_ms: tuple[int, int], **given: object) -> tuple[Simulation, Bottleneck]:
    """The run, and what was found in it between two times."""
    costs = Costs(made.costs, **({"link_bytes_per_ms": LINK_BYTES_PER_MS} if "num_task_managers" in given else {}))
    with Simulation(made.job, policy="timed", costs=costs, check_every=0, **given) as run:  # type: ignore[arg-type]
        watch = PressureWatch(run)
        for end_ms in until_ms:
            watch.loads()
            while run.time_ms < end_ms:
                assert run.step() is not None, "the job was over too soon to be looked at"
        return run, watch.bottleneck()


@pytest.mark.sampled(one_in=8)
@pytest.mark.parametrize("seed", range(40))
def test_a_slow_link_is_named_by_both_its_ends_and_no_branch_beside_it(seed: int) -> None:
    run, found = watched(linked(seed), (1_500, 2_000), num_task_managers=2)
    where = {(each.vertex.id, each.subtask): each.task_manager for each in run.graph.vertices}
    name_of = {(each.vertex.id, each.subtask): each.name for each in run.graph.vertices}
    assert found.kind is BottleneckKind.EXCHANGE, f"{seed=} {found}"
    assert found.place is not None
    assert found.producer is not None
    assert name_of[found.place].startswith("far0"), f"{seed=} {name_of[found.place]}"
    assert where[found.producer] != where[found.place], f"{seed=} {found}"


@pytest.mark.sampled(one_in=8)
@pytest.mark.parametrize("seed", range(40))
def test_where_a_barrier_is_waited_for_it_is_the_first_that_waits(seed: int) -> None:
    run, found = watched(aligned(seed), (400, 600), store=MemoryStore())
    name_of = {(each.vertex.id, each.subtask): each.name for each in run.graph.vertices}
    assert found.kind is BottleneckKind.ALIGNING, f"{seed=} {found}"
    assert found.place is not None
    assert name_of[found.place].startswith("meet0"), f"{seed=} {name_of[found.place]}"
