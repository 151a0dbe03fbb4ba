"""`policy="timed"`: work takes virtual time, and what is busy takes no step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from refimpl.cluster import FixedDelayRestart
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Costs, StepTask, wire
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.records import BYTES, LONG, StreamRecord
from refimpl.state import MemoryStore
from refimpl.task import IterableReader, KeyedProcessFunction, Operator, ProcessContext

ONE_BY_ONE = {"source_batch": 1, "buffer_timeout_ms": 0, "segment_size_bytes": 64, "num_buffers": 64}


def numbers(num_records: int, results: list[int], **config: object) -> StreamEnvironment:
    """A source and a sink, a task each."""
    environment = StreamEnvironment(Config(**ONE_BY_ONE | config))
    source = environment.source(lambda *_: IterableReader(range(num_records)), "source", LONG)
    source = source.slot_sharing_group("first").rebalance()
    source.map(lambda value: value, "work", type=LONG).slot_sharing_group("second").sink(results.append, "sink")
    return environment


def work_of(simulation: Simulation) -> str:
    (name,) = [name for name in simulation.task_times if name.startswith("work")]
    return name


def test_a_record_takes_what_it_costs_and_tasks_work_side_by_side() -> None:
    results: list[int] = []
    with Simulation(numbers(100, results), policy="timed", costs=Costs({"source": 1.0, "work": 3.0})) as simulation:
        simulation.run()
        source, work = simulation.task_times["source-0"], simulation.task_times[work_of(simulation)]
    assert results == list(range(100))
    assert 300 <= work.busy_ms < 301
    assert 100 <= source.busy_ms < 101
    assert 297 <= simulation.time_ms < 302  # the slower one sets the pace; they do not wait for one another's work
    assert source.backpressured_ms > 50
    assert work.backpressured_ms == 0
    assert work.idle_ms < 2


def test_what_the_operators_of_a_chain_cost_adds_up() -> None:
    results: list[int] = []
    environment = StreamEnvironment(Config(**ONE_BY_ONE))
    source = environment.source(lambda *_: IterableReader(range(10)), "source", LONG)
    source.filter(lambda value: value % 2 == 0, "even").map(lambda value: value, "map", type=LONG).sink(results.append)
    costs = Costs({"source": 1.0, "even": 10.0, "map": 100.0})
    with Simulation(environment, policy="timed", costs=costs, step_ms=0.0) as simulation:
        simulation.run()
        ((_, times),) = simulation.task_times.items()
    assert times.busy_ms == 10 * 1 + 10 * 10 + 5 * 100


def test_one_subtask_may_be_slower_than_the_others() -> None:
    environment = StreamEnvironment(Config(**ONE_BY_ONE), parallelism=2)
    source = environment.source(lambda *_: IterableReader(range(10)), "source", LONG)
    source.rebalance().sink(lambda _value: None, "sink")
    costs = Costs({"sink": 1.0, "sink-1": 7.0})
    with Simulation(environment, policy="timed", costs=costs, step_ms=0.0) as simulation:
        simulation.run()
        busy = {name: times.busy_ms for name, times in simulation.task_times.items()}
    assert busy == {"source-0": 0, "source-1": 0, "sink-0": 10, "sink-1": 70}


def test_a_busy_task_is_not_enabled_while_something_else_can_happen() -> None:
    with Simulation(numbers(5, []), policy="timed", costs=Costs({"source": 10.0, "work": 7.0})) as simulation:
        first = StepTask("source-0")
        simulation.step(first)
        assert simulation.time_ms == 0.0
        while len(simulation.enabled()) > 1 or simulation.enabled() != [first]:
            assert first not in simulation.enabled()
            assert simulation.time_ms < 10.0
            simulation.step()
        simulation.step(first)
        assert simulation.time_ms == 10.0


def test_a_list_gives_its_numbers_in_turn_and_a_function_is_told_the_time() -> None:
    asked: list[tuple[float, int]] = []

    def slower(now_ms: float, number: int) -> float:
        asked.append((now_ms, number))
        return 1.0 if now_ms < 5 else 4.0

    with Simulation(numbers(8, []), policy="timed", costs=Costs({"source": slower})) as simulation:
        simulation.run()
    assert asked == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (9, 6), (13, 7)]
    with Simulation(numbers(5, []), policy="timed", costs=Costs({"work": [1.0, 20.0]}), step_ms=0.0) as simulation:
        simulation.run()
        assert simulation.task_times[work_of(simulation)].busy_ms == 1 + 20 + 1 + 20 + 1


def test_a_step_that_moves_many_records_costs_all_of_them_one_after_the_other() -> None:
    asked: list[tuple[float, int]] = []

    def one(now_ms: float, number: int) -> float:
        asked.append((now_ms, number))
        return 2.0

    with Simulation(numbers(4, [], source_batch=4), policy="timed", costs=Costs({"source": one})) as simulation:
        simulation.run()
    assert asked == [(0, 0), (2, 1), (4, 2), (6, 3)]


def test_a_link_takes_its_delay_and_what_its_bytes_take() -> None:
    def arrivals(costs: Costs) -> float:
        results: list[int] = []
        with Simulation(numbers(1, results), policy="timed", costs=costs, num_task_managers=2) as simulation:
            while not results:
                simulation.step()
            return simulation.time_ms

    assert arrivals(Costs()) < 1
    slow = arrivals(Costs(link_delay_ms=50.0))
    assert 100 <= slow < 101  # the request for the partition, and the answer
    assert arrivals(Costs(link_delay_ms=50.0, link_bytes_per_ms=1.0)) > slow + 40


@pytest.mark.parametrize("seed", range(5))
def test_the_same_seed_takes_the_same_steps_and_steps_can_be_taken_again(seed: int) -> None:
    costs = Costs({"source": 1.0, "work": [0.5, 3.0, 1.0]}, link_delay_ms=0.3, link_bytes_per_ms=100.0)

    def simulation() -> Simulation:
        return Simulation(
            numbers(30, []), seed, policy="timed", costs=costs, num_task_managers=2, max_delay_ms=0.2, check_every=1
        )

    with simulation() as first, simulation() as second, simulation() as fork:
        steps = [first.step() for _ in range(90)]
        assert steps == [second.step() for _ in range(90)]
        assert first.snapshot() == second.snapshot()
        for step in steps:
            fork.step(step)
        assert fork.snapshot() == first.snapshot()
        other = fork.enabled()[-1]
        fork.step(other)
        assert fork.run().time_ms > 30
        assert first.run().is_done


@pytest.mark.parametrize("credit_based", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_the_answer_is_that_of_every_other_policy(seed: int, credit_based: bool) -> None:
    results: list[int] = []
    costs = Costs({"source": [0.3, 1.7], "work": [2.0, 0.1, 0.4]}, link_delay_ms=0.5)
    job = numbers(60, results, credit_based=credit_based)
    with Simulation(job, seed, policy="timed", costs=costs, num_task_managers=2) as simulation:
        simulation.run()
    assert results == list(range(60))


def test_the_time_of_each_task_is_all_of_the_time_until_it_ended() -> None:
    with Simulation(numbers(40, []), policy="timed", costs=Costs({"source": 1.0, "work": 2.5})) as simulation:
        while not simulation.is_done:
            now = simulation.time_ms
            simulation.step()
            for task in simulation.deployment.tasks:
                if not task.is_done:
                    assert simulation.task_times[task.name].total_ms == pytest.approx(simulation.time_ms)
        assert now > 0


class _Alarm(KeyedProcessFunction):
    """Sets a timer with the first record, and tells when it came."""

    def process_element(self, value: int, ctx: ProcessContext) -> None:
        if not value:
            ctx.timers.register_processing_time_timer(1_300)

    def on_timer(self, timestamp: int, ctx: ProcessContext) -> list[int]:
        return [ctx.timers.current_processing_time]


def test_a_timer_fires_at_its_time_though_the_next_work_ends_later() -> None:
    rang: list[int] = []
    environment = StreamEnvironment(Config(**ONE_BY_ONE, auto_watermark_interval_ms=0))
    source = environment.source(lambda *_: IterableReader(range(10)), "source", LONG)
    source.key_by(lambda _value: 0).process(_Alarm(), type=LONG).sink(rang.append)
    with Simulation(environment, policy="timed", costs=Costs({"source": 1_000.0})) as simulation:
        simulation.run()
    assert rang == [1_300]


def test_a_reader_that_has_nothing_is_asked_again_after_virtual_time() -> None:
    class Slow(IterableReader):
        waits = 50

        def read(self, max_records: int) -> list[object] | None:  # type: ignore[override]
            self.waits -= 1
            return [] if self.waits > 0 else None

    environment = StreamEnvironment(Config(**ONE_BY_ONE))
    environment.source(lambda *_: Slow([]), "source", LONG).sink(lambda _value: None)
    with Simulation(environment, policy="timed") as simulation:
        simulation.run()
        ((_, times),) = simulation.task_times.items()
    assert simulation.time_ms > 16 * 40
    assert times.idle_ms > 10 * times.busy_ms


def test_a_job_that_crashes_goes_on_from_its_checkpoint() -> None:
    results: list[int] = []
    store = MemoryStore()
    job = numbers(100, results, checkpoint_interval_ms=10)
    costs = Costs({"source": 1.0, "work": 1.5})
    with Simulation(job, policy="timed", costs=costs, store=store, restart=FixedDelayRestart(3, 5.0)) as simulation:
        while simulation.time_ms < 60:
            simulation.step()
        num_before = len(results)
        simulation.crash()
        simulation.run()
    assert set(results) == set(range(100))
    again = results[num_before]
    assert 10 < again <= num_before


def test_costs_must_make_sense() -> None:
    with pytest.raises(LocalUsageError, match="the service time of 'map' is -1"):
        Costs({"map": -1.0})
    with pytest.raises(LocalUsageError, match="the service time of 'map' is -2"):
        Costs({"map": [1.0, -2.0]})
    with pytest.raises(LocalUsageError, match="empty"):
        Costs({"map": []})
    with pytest.raises(LocalUsageError, match="link_delay_ms"):
        Costs(link_delay_ms=-1.0)
    with pytest.raises(LocalUsageError, match="nothing would ever arrive"):
        Costs(link_bytes_per_ms=0.0)
    with pytest.raises(LocalUsageError, match='costs are those of policy="timed"'):
        Simulation(numbers(1, []), costs=Costs())
    with (
        Simulation(numbers(1, []), policy="timed", costs=Costs({"work": lambda *_: float("nan")})) as simulation,
        pytest.raises(LocalUsageError, match="the service time of 'work' is nan"),
    ):
        simulation.run()


# -- alignment under a slow consumer -----------------------------------------------------------------

TRIGGER_MS = 3_000


class Arrival(Operator):
    """The end of a stream, which says when a barrier has come."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell

    def process(self, record: StreamRecord) -> None: ...

    def prepare_barrier(self, checkpoint_id: int) -> None:
        self._tell(self.context.subtask)


def alignment_ms(*, credit_based: bool) -> float:
    """From the trigger of a checkpoint to its last task: two sources elsewhere, of two ends one takes 5 ms a record."""
    arrived: dict[int, float] = {}
    config = Config(**ONE_BY_ONE, credit_based=credit_based, checkpoint_interval_ms=TRIGGER_MS)
    record = bytes(config.segment_size_bytes - 13)  # with its length, tag and length of bytes it fills a buffer
    environment = StreamEnvironment(config, parallelism=2)
    source = environment.source(lambda *_: IterableReader(iter(lambda: record, None)), "source", BYTES)
    source = source.slot_sharing_group("first").rebalance()
    end = source.transform("end", lambda: Arrival(lambda number: arrived.setdefault(number, run.time_ms)))
    end.slot_sharing_group("second")
    costs = Costs({"source": 0.5, "end": 0.5, "end-0": 5.0})
    with Simulation(environment, policy="timed", costs=costs, num_task_managers=2, check_every=0, step_ms=0.0) as run:
        while len(arrived) < 2:
            run.step()
    return max(arrived.values()) - TRIGGER_MS


def test_with_credits_a_barrier_does_not_wait_for_what_the_connection_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them it does, and in the end much longer: 80 segments of 32 KiB are what TCP holds on one machine."""
    with_credits, without = list[float](), list[float]()
    for capacity in (8, 40, 80):
        monkeypatch.setattr(wire, "CAPACITY", capacity)
        with_credits.append(alignment_ms(credit_based=True))
        without.append(alignment_ms(credit_based=False))
    assert len(set(with_credits)) == 1
    assert without == sorted(set(without))
    assert with_credits[-1] / without[-1] < 0.6
