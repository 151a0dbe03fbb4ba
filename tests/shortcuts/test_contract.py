"""A shortcut changes no byte, no event, no order and no count: everything is run with shortcuts and without."""

from __future__ import annotations

import importlib
import inspect
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from refimpl.config import Config
from refimpl.consumer import NetworkInput
from refimpl.drivers import Simulation
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, RecordBatch, StreamRecord, Vectorized
from refimpl.task import CountingOutput, OperatorChain, SourceInput, Task
from tests import test_barriers, test_batches, test_drivers, test_laws, test_one_way, test_remote_laws, test_scenarios
from tests.conformance.conftest import KNOWN, VISIBLE, is_big, load
from tests.shortcuts.fast_parts import Observed, fast_in, fast_parts, observe
from tests.support.random_jobs import Shape


def both_ways(build: Callable[[list[object]], StreamEnvironment], **options: Any) -> tuple[Observed, Observed]:
    """A job without shortcuts, and with them."""
    observed = []
    for shortcuts in (False, True):
        elements: list[object] = []
        observed.append(observe(build(elements), elements, shortcuts, **options))
    return observed[0], observed[1]


def same(plain: Observed, fast: Observed) -> None:
    """Both runs took the same steps: the first event that differs is shown."""
    for number, (one, other) in enumerate(zip(plain.events, fast.events, strict=False)):
        assert one == other, f"event {number}"
    assert plain == fast


# -- stories -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", test_scenarios.ALL, ids=lambda path: path.stem)
def test_a_scenario_goes_as_it_is_written_with_shortcuts_too(path: Path) -> None:
    script = path.read_text(encoding="utf-8")
    with fast_in(test_scenarios):
        assert test_scenarios.replay(script) == script


# -- random jobs -------------------------------------------------------------------------------------


def same_shape(shape: Shape) -> None:
    num_buffers = max(1, shape.num_required() + shape.spare_buffers)
    expected: list[object] = []

    def build(results: list[object]) -> StreamEnvironment:
        environment = shape.environment(num_buffers)
        expected[:] = shape.build(environment, results)
        return environment

    plain, fast = both_ways(
        build,
        seed=shape.seed,
        policy=shape.policy,
        num_task_managers=shape.num_task_managers,
        max_delay_ms=shape.max_delay_ms,
    )
    same(plain, fast)
    assert Counter(fast.elements) == Counter(expected)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(test_laws.SHAPES)
@pytest.mark.slow
def test_random_jobs_take_the_same_steps(shape: Shape) -> None:
    same_shape(shape)


@pytest.mark.slow
@pytest.mark.sampled(one_in=11)
@pytest.mark.parametrize("seed", range(100))
def test_random_jobs_on_several_task_managers_take_the_same_steps(seed: int) -> None:
    same_shape(test_remote_laws.drawn(seed))


# -- vectors of the real Flink -----------------------------------------------------------------------

TOPICS = [path.stem for path in sorted((Path(test_scenarios.__file__).parent / "conformance").glob("test_*.py"))]


def cases_of(module: ModuleType) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for case in load(VISIBLE / f"{module.TOPIC}.json"):
        if getattr(module, "SIDE", case.get("side")) != case.get("side") or is_big(case):
            continue
        versions = [KNOWN[version] for version in case["flink"] if version in KNOWN]
        found += [(case, version) for version in versions] if module.BY_VERSION else [(case,)]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("topic", TOPICS)
def test_fast_parts_do_what_flink_did(topic: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    module = importlib.import_module(f"tests.conformance.{topic}")
    if not hasattr(module, "TOPIC"):
        return
    tests = [test for name, test in vars(module).items() if name.startswith("test_")]
    with fast_in(module):
        for case in cases_of(module):
            for test in tests:
                folder = [tmp_path_factory.mktemp("case")] if "tmp_path" in inspect.signature(test).parameters else []
                test(*json.loads(json.dumps(case[:1])), *case[1:], *folder)


def test_each_fast_part_stands_for_one_of_the_books() -> None:
    parts = fast_parts()
    assert {NetworkInput, SourceInput, OperatorChain, CountingOutput, Task} <= parts.keys()
    for book, fast in parts.items():
        assert issubclass(fast, book)
        assert book.__module__.split(".")[1] not in ("shortcuts", "drivers")


# -- jobs of the drivers' tests ----------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("segment", [32, 600])
@pytest.mark.parametrize("timeout", [-1, 0, 1])
def test_jobs_of_records_take_the_same_steps(width: int, segment: int, timeout: int) -> None:
    config = Config(segment_size_bytes=segment, num_buffers=200, buffer_timeout_ms=timeout, source_batch=16)
    for build in (
        lambda results: test_drivers.windows_of(config, width, 300, results),
        lambda results: test_drivers.numbers(StreamEnvironment(config, width), 300, results),
    ):
        same(*both_ways(build, seed=3, num_task_managers=width, max_delay_ms=0.5, check_every=0))


@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize("mode", [{}, {"checkpointing_mode": test_barriers.AT_LEAST_ONCE}], ids=["exactly", "at least"])
@pytest.mark.parametrize("width", [1, 2])
def test_barriers_cut_in_the_same_places(width: int, mode: dict[str, Any]) -> None:
    spread = {"num_task_managers": width, "max_delay_ms": 0.2, "step_ms": 0.05, "check_every": 0}
    for seed in range(3):
        same(*both_ways(lambda results: test_barriers.job(results, **mode), seed=seed, **spread))


# -- jobs of batches ---------------------------------------------------------------------------------


@pytest.mark.parametrize("segment", [64, 512, 4096])
@pytest.mark.parametrize("object_reuse", [True, False])
@pytest.mark.parametrize("in_batches", [True, False])
def test_batches_send_the_bytes_of_their_records(in_batches: bool, object_reuse: bool, segment: int) -> None:
    """One subtask of each operator: then the order of all records is known."""
    options: dict[str, Any] = {"segment_size_bytes": segment, "object_reuse": object_reuse, "width": 1}

    found: list[list[object]] = []

    def build(_results: list[object]) -> StreamEnvironment:
        rows = test_batches.made(2)
        environment, results, late = test_batches.job(rows, test_batches.MANY, in_batches, disorder_ms=2_000, **options)
        found.extend((results, late))
        return environment

    plain, fast = both_ways(build, check_every=0)
    assert plain.channels == fast.channels
    assert plain.counts == fast.counts
    assert found[:2] == found[2:]
    assert min(map(len, found)) > 20


@pytest.mark.parametrize("route", ["forward", "rebalance", "shuffle", "broadcast", "key_by"])
def test_batches_go_where_their_records_go(route: str) -> None:
    def build(results: list[object]) -> StreamEnvironment:
        environment = StreamEnvironment(Config(segment_size_bytes=100, num_buffers=400, source_batch=50), 2)
        source = environment.source(Numbers, type=LONG)
        doubled = source.map(Vectorized(lambda n: n * 2, lambda batch: batch[0] * 2), "doubled", LONG)
        keys = Vectorized(lambda n: n % 5, lambda batch: batch[0] % 5)
        routed = doubled.key_by(keys) if route == "key_by" else getattr(doubled, route)()
        routed.sink(Vectorized(results.append, lambda batch: results.extend(batch[0].tolist())))
        return environment

    plain, fast = both_ways(build, check_every=0)
    assert plain.channels == fast.channels
    assert plain.counts == fast.counts
    assert sorted(plain.elements) == sorted(fast.elements)


class Numbers:
    """Reads numbers in batches, and now and then one by one."""

    def __init__(self, subtask: int, parallelism: int) -> None:
        self.left, self.num_reads = np.arange(subtask, 1_000, parallelism), 0

    def read(self, max_records: int) -> Any:
        now, self.left = self.left[:max_records], self.left[max_records:]
        self.num_reads += 1
        if not len(now):
            return None
        if self.num_reads % 3 == 0:
            return [StreamRecord(number, number) for number in now.tolist()]
        return RecordBatch([now], now, is_tuple=False)

    def close(self) -> None: ...


# -- a learner's parts -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 2])
def test_a_learners_part_is_called_for_each_record_and_each_buffer_with_shortcuts_too(width: int) -> None:
    results: list[Any] = []
    job = test_one_way.counting_job(results, shortcuts=True).use(**test_one_way.PARTS)
    Simulation(job, check_every=0, num_task_managers=width).run()
    test_one_way.check_counts(results)


@pytest.mark.slow
def test_a_learners_part_that_is_put_in_later_is_called_from_then_on_with_shortcuts_too() -> None:
    results: list[Any] = []
    with Simulation(test_one_way.counting_job(results, shortcuts=True), check_every=0) as simulation:
        while len(results) < test_one_way.NUM_RECORDS // 4:
            simulation.step()
        simulation.swap(**test_one_way.PARTS)
        simulation.run()
    test_one_way.check_counts_after_a_swap(results)
