"""Barriers cut a whole job in two, on every driver: what is before one at the sources is before it everywhere."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from refimpl.config import CheckpointingMode, Config, FlinkVersion
from refimpl.drivers import AsyncRun, ProcessRun, Simulation, ThreadedRun
from refimpl.drivers.simulation import Action, SendBarrier, StepTask
from refimpl.invariants import check_all
from refimpl.job import JobSnapshot, StreamEnvironment
from refimpl.records import LONG, Alignment, CheckpointBarrier, RecordBatch, StreamRecord, Vectorized
from refimpl.task import Cut
from tests.support.polling import until

EXACTLY_ONCE, AT_LEAST_ONCE = CheckpointingMode.EXACTLY_ONCE, CheckpointingMode.AT_LEAST_ONCE
STAGES = ["source", "first", "second", "sink"]
TIMEOUT_S = 120.0  # only so that a hang fails


class Numbers:
    """A reader of so many numbers, as records or in batches."""

    def __init__(self, numbers: range, in_batches: bool) -> None:
        self._numbers, self._in_batches = numbers, in_batches

    def read(self, max_records: int) -> Sequence[StreamRecord] | RecordBatch | None:
        now, self._numbers = self._numbers[:max_records], self._numbers[max_records:]
        if not now:
            return None
        if self._in_batches:
            return RecordBatch([np.array(now)], is_tuple=False)
        return [StreamRecord(number) for number in now]

    def close(self) -> None: ...


def job(results: list[object], counts: Sequence[int] = (600, 600), in_batches: bool = False, **options: object):
    """Sources of so many numbers → three → two → one sink, none chained."""
    settings = {"segment_size_bytes": 64, "num_buffers": 200, "source_batch": 8, "checkpoint_interval_ms": 1}
    environment = StreamEnvironment(Config(**{**settings, **options}), 2)
    numbers = environment.source(
        lambda subtask, width: Numbers(range(subtask, counts[subtask] * width, width), in_batches), "source", LONG
    )
    same = Vectorized(lambda value: value, lambda batch: batch[0]) if in_batches else lambda value: value
    first = numbers.rebalance().map(same, "first", LONG).set_parallelism(3)
    second = first.shuffle().map(same, "second", LONG)
    second.rebalance().sink(results.append, "sink").set_parallelism(1)
    return environment


def run_with_cuts(simulation: Simulation) -> dict[int, dict[str, Cut]]:
    """Run to the end; the cuts of each checkpoint, by task."""
    cuts: dict[int, dict[str, Cut]] = defaultdict(dict)
    tasks = [task for deployment in simulation.deployments for task in deployment.tasks]

    def look(_: Simulation) -> None:
        for task in tasks:
            if (cut := task.checkpoints.last_cut) is not None:
                cuts[cut.checkpoint_id][task.name] = cut

    with simulation:
        simulation.run(on_step=look)
    return cuts


def totals(cuts: dict[str, Cut]) -> list[tuple[int, int]]:
    """Records before the cut, in and out, over all subtasks of each stage."""
    return [
        (
            sum(cut.num_records_in for name, cut in cuts.items() if name.startswith(stage)),
            sum(cut.num_records_out for name, cut in cuts.items() if name.startswith(stage)),
        )
        for stage in STAGES
    ]


def whole(cuts: dict[int, dict[str, Cut]], num_tasks: int = 8) -> dict[int, list[tuple[int, int]]]:
    """Of the checkpoints that have cut every task."""
    return {number: totals(by_task) for number, by_task in cuts.items() if len(by_task) == num_tasks}


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("in_batches", [False, True], ids=["records", "batches"])
@pytest.mark.parametrize("num_task_managers", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_exactly_once_a_cut_holds_what_was_before_it_at_the_sources_and_no_more(seed, num_task_managers, in_batches):
    results: list[object] = []
    environment = job(results, in_batches=in_batches)
    spread = {"num_task_managers": num_task_managers, "max_delay_ms": 0.2}
    cuts = run_with_cuts(Simulation(environment, seed, step_ms=0.05, check_every=7, **spread))
    complete = whole(cuts)
    assert len(complete) >= 3
    for number, stages in complete.items():
        for (_, out), (into, _) in pairwise(stages):
            assert out == into, f"seed {seed}, checkpoint {number}: {dict(zip(STAGES, stages, strict=True))}"
    assert sorted(results) == list(range(1200))


def test_at_least_once_a_cut_may_hold_more_and_never_less():
    more = 0
    for seed in range(6):
        results: list[object] = []
        environment = job(results, (800, 800), checkpointing_mode=AT_LEAST_ONCE)
        cuts = run_with_cuts(Simulation(environment, seed, step_ms=0.05, check_every=0))
        complete = whole(cuts)
        assert len(complete) >= 3
        for number, stages in complete.items():
            for (_, out), (into, _) in pairwise(stages):
                assert out <= into, f"seed {seed}, checkpoint {number}"
                more += into - out
        assert sorted(results) == list(range(1600))
    assert more > 0


def test_a_channel_that_has_delivered_its_barrier_waits_and_its_producer_with_it():
    results: list[object] = []
    with Simulation(job(results), seed=1) as simulation:
        seen = 0
        while simulation.step() is not None:
            snapshot = simulation.snapshot()
            for gate, task in zip(snapshot.gates, (each for each in snapshot.tasks if each.alignment), strict=True):
                assert gate.name == task.name
                blocked = {
                    channel.index
                    for channel in gate.channels
                    if _subpartition(snapshot, channel.producer).is_blocked and not channel.is_released
                }
                assert blocked == set(task.alignment.arrived) or task.alignment.checkpoint_id < 0
                seen += bool(blocked)
        assert seen > 10


def _subpartition(snapshot: JobSnapshot, name: str):
    partition, index = name.removesuffix("]").split("[")
    return next(each for each in snapshot.partitions if each.name == partition).subpartitions[int(index)]


@pytest.mark.parametrize("version", FlinkVersion)
def test_a_source_that_ends_aborts_in_1_11_and_counts_as_arrived_in_2(version):
    results: list[object] = []
    with Simulation(job(results, (40, 400), flink_version=version), step_ms=1.0) as simulation:
        ended, other = simulation.deployment.tasks[:2]
        while not ended.is_done:
            simulation.step(StepTask(ended.name))
        simulation.step(next(each for each in simulation.enabled() if isinstance(each, SendBarrier)))
        simulation.step(StepTask(other.name))  # its barrier is out, the other source will never send one
        simulation.run()
        readers = [task for task in simulation.snapshot().tasks if task.name.startswith("first")]
    assert sorted(results) == sorted([*range(0, 80, 2), *range(1, 800, 2)])
    assert [each.alignment.num_aborted for each in readers] == [int(version is FlinkVersion.V1_11)] * 3
    assert all(each.alignment.num_completed >= 1 for each in readers)  # the other source goes on, alone


def test_without_an_interval_nothing_is_sent():
    results: list[object] = []
    actions: list[Action] = []
    with Simulation(job(results, checkpoint_interval_ms=0), seed=0) as simulation:
        while (action := simulation.step()) is not None:
            actions.append(action)
        assert not [each for each in actions if isinstance(each, SendBarrier)]
        assert all(task.cut is None for task in simulation.snapshot().tasks)


def test_the_same_seed_sends_its_barriers_at_the_same_steps():
    def history() -> list[str]:
        done: list[str] = []
        with Simulation(job([], (300, 300)), seed=5, num_task_managers=2, max_delay_ms=0.3) as simulation:
            while (action := simulation.step()) is not None:
                done.append(str(action))
        return done

    first = history()
    assert any(words.startswith("send barrier 1 at ") for words in first)
    assert history() == first


def test_the_next_barrier_waits_until_the_last_has_passed_every_task():
    with Simulation(job([]), seed=3, step_ms=5.0, check_every=0) as simulation:
        tasks = simulation.deployment.tasks
        num_sent = 0
        while (action := simulation.step()) is not None:
            if isinstance(action, SendBarrier):
                behind = [t.name for t in tasks if t.checkpoints.last_id < action.checkpoint_id - 1 and not t.is_done]
                assert behind == []
                num_sent += 1
        assert num_sent >= 3


def test_a_channel_that_is_never_told_to_go_on_is_found_as_a_job_that_stands_still(monkeypatch):
    monkeypatch.setattr("refimpl.consumer.network_input.act_on", lambda *_: iter(()))
    with pytest.raises(AssertionError, match="nothing can move"):
        Simulation(job([]), seed=0).run(max_steps=100_000)


def test_a_barrier_waits_behind_the_record_in_hand():
    results: list[object] = []
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=12, buffer_timeout_ms=-1), 1)
    environment.from_collection(["x" * 1000, "y"]).rebalance().sink(results.append)
    with Simulation(environment, policy="round_robin") as simulation:
        source, sink = simulation.deployment.tasks
        while not source.writers[0].is_blocked:
            source.step()
        source.checkpoints.pass_on(CheckpointBarrier(7, 0, alignment=Alignment.ALIGNED))
        simulation.run()
        assert source.checkpoints.last_cut == Cut(7, 1, 1)
        assert sink.checkpoints.last_cut == Cut(7, 1, 0)
        check_all(simulation.deployment)
    assert results == ["x" * 1000, "y"]


# -- drivers with clocks -----------------------------------------------------------------------------------------------


class UntilTold:
    """A reader of numbers that ends when it is told to, and lets others have the interpreter."""

    over = threading.Event()

    def __init__(self, first: int) -> None:
        self._next = first

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        if self.over.is_set() or self._next > 50_000_000:
            return None
        self._next += max_records
        return [StreamRecord(number) for number in range(self._next - max_records, self._next)]

    def close(self) -> None: ...


def endless() -> StreamEnvironment:
    UntilTold.over.clear()
    config = Config(segment_size_bytes=256, num_buffers=200, checkpoint_interval_ms=10, buffer_timeout_ms=10)
    environment = StreamEnvironment(config, 2)
    numbers = environment.source(lambda subtask, _: UntilTold(subtask * 10**6), "source", LONG)
    numbers.rebalance().map(lambda value: value, "first", LONG).rebalance().sink(bool, "sink")
    return environment


def completed(snapshot: JobSnapshot) -> int:
    """How many checkpoints every reading task has completed, at least."""
    return min(task.alignment.num_completed for task in snapshot.tasks if task.alignment is not None)


@pytest.mark.parametrize("num_task_managers", [1, 2])
def test_threads_complete_one_checkpoint_after_the_other(num_task_managers):
    with ThreadedRun(endless(), num_task_managers=num_task_managers) as run:
        run.start()
        try:
            until(lambda: completed(run.snapshot()) >= 5)
        finally:
            UntilTold.over.set()
        assert run.join(TIMEOUT_S)


@pytest.mark.parametrize("num_task_managers", [1, 2])
def test_an_event_loop_completes_them_too(num_task_managers):
    async def main() -> int:
        run = AsyncRun(endless(), num_task_managers=num_task_managers)
        running = asyncio.create_task(run.execute())
        try:
            while not running.done() and completed(run.snapshot()) < 5:
                await asyncio.sleep(0.01)
        finally:
            UntilTold.over.set()
        await running
        return completed(run.snapshot())

    assert asyncio.run(main()) >= 5


@pytest.mark.slow
def test_processes_align_what_others_send():
    with ProcessRun(endless()) as run:
        run.start()
        until(lambda: completed(run.snapshot()) >= 5)
        tasks = run.snapshot().tasks
        assert {task.alignment.mode for task in tasks if task.alignment} == {EXACTLY_ONCE}
