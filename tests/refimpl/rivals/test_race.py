"""The race: who bounds its queues, who swings, who is slow, who harms an innocent branch. Signs, not numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from refimpl.rivals import (
    ENTRANTS,
    PHASES,
    RECORD_BYTES,
    SINK,
    SLOW,
    SOURCE,
    BoundedQueue,
    Course,
    Phase,
    Run,
    Sample,
    Workload,
    measure,
    run_engine,
    signs,
)

SHORT = tuple(
    Phase(phase.name, seconds, phase.offered_per_s, phase.capacity_per_s)
    for phase, seconds in zip(PHASES, (10, 45, 25, 5, 10), strict=True)
)


def failed_signs(seed: int, phases: Sequence[Phase]) -> list[str]:
    measures = {name: measure(run(Workload(seed, phases))) for name, run in ENTRANTS.items()}
    return [sign for sign, holds in signs(measures) if not holds] and [f"seed {seed}: {signs(measures)}\n{measures}"]


@pytest.mark.slow
def test_the_signs_hold_in_a_short_race() -> None:
    assert failed_signs(0, SHORT) == []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The seeds of whole races, in a whole run only."""
    if "race_seed" in metafunc.fixturenames:
        metafunc.parametrize("race_seed", range(50) if metafunc.config.getoption("whole") else [])


@pytest.mark.slow
def test_the_signs_hold_in_every_race(race_seed: int) -> None:
    """All phases: `make race`."""
    assert failed_signs(race_seed, PHASES) == []


def run_of(rates: list[int], phases: tuple[Phase, ...], innocent: int = 100) -> Run:
    """A run whose source emits so many in each second, and whose sink takes them at once."""
    emitted, samples = 0, []
    for second, rate in enumerate(rates):
        for tenth in range(10):
            counts = emitted + rate * (tenth + 1) // 10, innocent * (10 * second + tenth + 1) // 10
            samples.append(Sample(counts, counts, 500))
        emitted += rate
    return Run("made", 0, phases, tuple(samples), tuple(float(n) for n in range(1, 201)))


STEPS = (Phase("free", 10, 100.0, 200.0), Phase("held", 60, 100.0, 50.0), Phase("free again", 20, 100.0, 200.0))


def test_what_is_steady_has_no_oscillation_and_has_reacted_at_once() -> None:
    found = measure(run_of([100] * 10 + [50] * 60 + [100] * 20, STEPS))
    assert [phase.throughput_per_s for phase in found.phases] == [100, 50, 100]
    assert [phase.oscillation for phase in found.phases] == [0, 0, 0]
    assert [phase.reaction_s for phase in found.phases] == [0, 0, 0]
    assert (found.recovery_s, found.innocent, found.peak_records) == (1, 1, 0)
    assert (found.p99_latency_ms, found.peak_memory_bytes) == (198, 500)


def test_who_stops_and_goes_swings_and_never_reacts() -> None:
    held = measure(run_of([100] * 10 + [100, 100, 0, 0] * 15 + [100] * 20, STEPS)).phases[1]
    assert held.num_stops == 10  # in the last 40 s
    assert held.oscillation == pytest.approx(1)
    assert held.deviation == pytest.approx(1)
    assert held.reaction_s == math.inf


def test_reaction_is_when_it_comes_near_and_stays_and_recovery_when_it_is_back() -> None:
    late = [100] * 10 + [100] * 20 + [50] * 40 + [50] * 6 + [100] * 14
    found = measure(run_of(late, STEPS))
    assert found.phases[1].reaction_s == 20
    assert found.recovery_s == 7
    off = measure(run_of([100] * 10 + [56] * 60 + [60] * 20, STEPS))
    assert off.phases[1].oscillation == 0
    assert off.phases[1].deviation == pytest.approx(0.12)
    assert (off.phases[1].reaction_s, off.recovery_s) == (math.inf, math.inf)


def test_service_times_are_one_list_by_seed() -> None:
    one, same, other = Workload(3), Workload(3), Workload(4)
    times = [one.service_ms(SINK, SLOW, 0.0, number) for number in range(997)]
    assert times == [same.service_ms(SINK, SLOW, 0.0, number) for number in range(997)]
    assert times != [other.service_ms(SINK, SLOW, 0.0, number) for number in range(997)]
    assert sum(times) / 997 == pytest.approx(1000 / 250)
    assert one.service_ms(SINK, SLOW, 60_000.0, 0) == pytest.approx(times[0] * 250 / 75)
    assert one.service_ms(SOURCE, 1, 185_000.0, 0) == pytest.approx(3 * one.service_ms(SOURCE, SLOW, 185_000.0, 17))


def test_one_record_at_a_time_in_each_stage_and_they_stay_in_order() -> None:
    course = Course(BoundedQueue(), Workload(5, (Phase("all", 10, 100.0, 1_000.0),)))
    course.run_until(10_000.0)
    assert course.emitted[SLOW] == pytest.approx(1_000, rel=0.05)
    assert course.left[SLOW] == pytest.approx(course.emitted[SLOW], abs=5)
    assert min(course.latencies_ms) == pytest.approx(20)  # two wires


def test_the_engine_under_the_same_workload_loses_nothing_and_is_the_same_each_time() -> None:
    workload = Workload(1, (Phase("all", 3, 100.0, 200.0), Phase("held", 3, 100.0, 40.0)))
    one, same = (run_engine(workload, 10.0, credit_based=True) for _ in range(2))
    assert one == same
    last = one.samples[-1]
    assert last.left[SLOW] == len(one.latencies_ms)
    assert last.emitted[SLOW] - last.left[SLOW] == pytest.approx(3 * 60, rel=0.3)
    assert last.num_inside * RECORD_BYTES <= last.memory_bytes
    assert sum(one.rates()[:3]) == pytest.approx(300, rel=0.05)
