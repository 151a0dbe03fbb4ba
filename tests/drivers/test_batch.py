"""A bounded job region by region: the same results as the stream, in fewer slots, and read again after a failure."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from refimpl.batch_options import BoundedDataKind, Compression, ExchangeMode, ExecutionMode
from refimpl.cluster import FixedDelayRestart, RegionState
from refimpl.config import FlinkVersion
from refimpl.drivers import Simulation
from refimpl.errors import DiskBudgetError, LocalUsageError, UserCodeError
from refimpl.job import StreamEnvironment
from refimpl.state.store import MemoryStore
from tests.support.batch_jobs import NUM, batch_config, expected, files_in, words


@pytest.mark.parametrize("mode", [*ExecutionMode, *ExchangeMode])
@pytest.mark.parametrize("num_task_managers", [1, 2])
def test_every_mode_gives_the_results_of_the_stream_and_leaves_no_file(
    mode: ExecutionMode | ExchangeMode, num_task_managers: int, tmp_path: Path
) -> None:
    found: list[tuple[str, int]] = []
    job = words(batch_config(tmp_path, execution_mode=mode), found)
    Simulation(job, seed=1, num_task_managers=num_task_managers, max_delay_ms=1.0).run()
    assert sorted(found) == expected()
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("version", FlinkVersion)
@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("kind", BoundedDataKind)
def test_however_results_are_kept_and_compressed_whoever_reads_them_here_or_far_finds_the_same(
    kind: BoundedDataKind, compression: Compression, version: FlinkVersion, tmp_path: Path
) -> None:
    found: list[tuple[str, int]] = []
    chosen = batch_config(tmp_path, bounded_data=kind, compression=compression, flink_version=version)
    Simulation(words(chosen, found), seed=2, num_task_managers=3).run()
    assert sorted(found) == expected()


def test_a_region_starts_when_every_blocking_result_it_reads_is_complete(tmp_path: Path) -> None:
    found: list[tuple[str, int]] = []
    with Simulation(words(batch_config(tmp_path), found), seed=3) as run:
        assert run.regions is not None
        schedule = run.regions.job.schedule
        before = [schedule.states]
        while run.step() is not None:
            if schedule.states != before[-1]:
                before.append(schedule.states)
    waiting, running, finished = RegionState.WAITING, RegionState.RUNNING, RegionState.FINISHED
    assert before[0] == (running,) * 2 + (waiting,) * 4
    for states in before:
        assert states[2] is waiting or states[:2] == (finished,) * 2
        assert states[5] is waiting or states[2:5] == (finished,) * 3
    assert before[-1] == (finished,) * 6


# -- slots -------------------------------------------------------------------------------------------------


def test_the_batch_run_needs_fewer_slots_than_the_stream(tmp_path: Path) -> None:
    found: list[tuple[str, int]] = []
    stream = batch_config(tmp_path, execution_mode=ExchangeMode.ALL_PIPELINED)
    with pytest.raises(LocalUsageError, match="needs 3 slots at one time, and there are 1"):
        Simulation(words(stream, found), num_slots=1)
    streamed = Simulation(words(stream, found), num_slots=3)
    batched = Simulation(words(batch_config(tmp_path), found), num_slots=1)
    for run in (streamed, batched):
        found.clear()
        run.run()
        assert sorted(found) == expected()
    assert streamed.regions is not None
    assert batched.regions is not None
    assert (streamed.regions.job.schedule.most_slots, batched.regions.job.schedule.most_slots) == (3, 1)


# -- failures ----------------------------------------------------------------------------------------------


def test_a_consumer_that_has_failed_reads_its_blocking_input_again_without_its_producer(tmp_path: Path) -> None:
    num_read: Counter[int] = Counter()
    failures = iter([RuntimeError("it breaks")])
    found: list[tuple[str, int]] = []
    job = words(batch_config(tmp_path), found, num_read)

    def fail_once(value: tuple[str, int]) -> None:
        found.append(value)
        if len(found) == NUM // 2 and (error := next(failures, None)) is not None:
            raise error

    job.graph.nodes[2].make_operator = StreamEnvironment().from_collection([1]).sink(fail_once).node.make_operator
    with Simulation(job, seed=4, restart=FixedDelayRestart(1, 10.0)) as run:
        run.run()
        assert run.regions is not None
        attempts = {each.name: each.attempt for each in run.graph.vertices}
    assert num_read == {0: 1, 1: 1}
    assert attempts == {"numbers-0": 0, "numbers-1": 0, "pair-0": 0, "pair-1": 0, "pair-2": 0, "sink-0": 1}
    assert sorted(found[NUM // 2 :]) == expected()


def test_without_a_restart_the_first_failure_is_the_last_and_nothing_is_left(tmp_path: Path) -> None:
    def refuse(_value: object) -> None:
        raise RuntimeError("it breaks")

    job = words(batch_config(tmp_path), [])
    job.graph.nodes[2].make_operator = StreamEnvironment().from_collection([1]).sink(refuse).node.make_operator
    with pytest.raises(UserCodeError, match="it breaks"):
        Simulation(job, seed=5).run()
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_crash_at_any_step_costs_only_the_regions_at_work(seed: int, tmp_path: Path) -> None:
    num_read: Counter[int] = Counter()
    found: list[tuple[str, int]] = []
    job = words(batch_config(tmp_path), found, num_read)
    with Simulation(job, seed=seed, num_task_managers=2, restart=FixedDelayRestart(1, 10.0)) as run:
        run.run(max_steps=10 + seed * 12)
        assert run.regions is not None
        has_read = run.regions.job.schedule.states[:2] == (RegionState.FINISHED,) * 2
        if run.is_done:
            return
        run.crash()
        run.run()
    assert set(found) == set(expected()), f"seed {seed}"
    if has_read:
        assert num_read == {0: 1, 1: 1}, f"seed {seed}"


def test_a_result_that_is_gone_is_made_again_by_its_producer(tmp_path: Path) -> None:
    num_read: Counter[int] = Counter()
    found: list[tuple[str, int]] = []
    with Simulation(words(batch_config(tmp_path), found, num_read), seed=6, restart=FixedDelayRestart(1, 10.0)) as run:
        assert run.regions is not None
        while run.regions.job.schedule.states[2] is not RegionState.RUNNING:
            run.step()
        run.regions.lose_result("numbers-1")
        run.crash()
        run.run()
    assert num_read == {0: 1, 1: 2}
    assert sorted(found) == expected()


@pytest.mark.parametrize("task_manager", [0, 1])
def test_with_a_task_manager_its_results_are_gone(task_manager: int, tmp_path: Path) -> None:
    found: list[tuple[str, int]] = []
    job = words(batch_config(tmp_path), found)
    with Simulation(job, seed=7, num_task_managers=2, restart=FixedDelayRestart(1, 10.0)) as run:
        assert run.regions is not None
        while run.regions.job.schedule.states[5] is not RegionState.RUNNING:
            run.step()
        run.kill(task_manager)
        run.run()
    assert set(found) == set(expected())


# -- what is refused -----------------------------------------------------------------------------------------


def test_results_that_would_take_more_disk_than_they_may_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(
        DiskBudgetError, match=r"the blocking result numbers-[01] → pair has .* max_spill_bytes"
    ) as refused:
        Simulation(
            words(batch_config(tmp_path, max_spill_bytes=200), []), policy="first", restart=FixedDelayRestart(9, 0)
        ).run()
    assert refused.value.partition in ("numbers-0 → pair", "numbers-1 → pair")
    assert refused.value.num_used + refused.value.num_bytes > 200 >= refused.value.num_used
    assert files_in(tmp_path) == []


def test_what_has_been_read_by_all_gives_its_disk_back(tmp_path: Path) -> None:
    with Simulation(words(batch_config(tmp_path), []), seed=8) as run:
        assert run.regions is not None
        taken = []
        while run.step() is not None:
            taken.append(run.regions.num_result_bytes)
    assert max(taken) > NUM * 8
    assert taken[-1] == 0


def test_a_store_for_checkpoints_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LocalUsageError, match="there are no checkpoints with them, so leave the store out"):
        Simulation(words(batch_config(tmp_path), []), store=MemoryStore())
