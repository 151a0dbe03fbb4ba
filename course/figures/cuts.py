"""The runs behind the figures of lesson 14: barriers on their way, what a crash leaves, and what holds a barrier up."""

from __future__ import annotations

from collections import Counter

from course.data.crashes import CRASH_STEP, count_through_a_crash, crashing_run
from course.data.sample import sample_flights
from course.data.statistics import Figures
from course.figures.jam import barriers_through
from refimpl.config import CheckpointingMode, Config
from refimpl.consumer import Abort, BarrierAligner, Complete, Decision, ResumeChannel
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import StepTask
from refimpl.job import StreamEnvironment
from refimpl.records import Alignment, CancelCheckpointMarker, CheckpointBarrier, EndOfPartition, Event
from refimpl.task import IterableReader
from widgets import Recording
from widgets.view_models import topology

__all__ = ["after_a_crash", "barriers_behind", "crash_recorded", "race_of_barriers", "told_to_the_aligner"]

_EXACTLY_ONCE, _AT_LEAST_ONCE = CheckpointingMode.EXACTLY_ONCE, CheckpointingMode.AT_LEAST_ONCE
_NUM_FLIGHTS = 600
_MOMENTS = 80  # of the race: two barriers
_EVERY = 8  # steps from one moment of a long recording to the next
_AIRPORTS = ("JFK", "LGA")


# -- the race ------------------------------------------------------------------------------------------------


def race_of_barriers(num_flights: int = 60) -> Recording:
    """A source for each of two airports and one task that counts; LaGuardia's is slow, its barrier is late."""
    flights = sample_flights(20 * num_flights)
    delays = [[each["dep_delay_minutes"] for each in flights if each["origin"] == name] for name in _AIRPORTS]
    of_airport = [each[:num] for each, num in zip(delays, (3 * num_flights, num_flights), strict=True)]
    config = Config(segment_size_bytes=64, num_buffers=24, source_batch=4, checkpoint_interval_ms=1)
    environment = StreamEnvironment(config, len(_AIRPORTS))
    source = environment.source(lambda subtask, _of: IterableReader(of_airport[subtask]), "airport")
    source.rebalance().sink(_ignore, "board").set_parallelism(1)
    slow = StepTask("airport-1")
    with Simulation(environment, policy="round_robin", check_every=0, step_ms=0.05) as simulation:
        start = simulation.snapshot()
        recording = Recording(topology(start))
        recording.add(start, "start")
        for number in range(1, _MOMENTS):
            enabled = simulation.enabled()
            others = [action for action in enabled if action != slow]
            action = enabled[0] if not others or number % 4 == 0 else others[number % len(others)]
            simulation.step(action)
            recording.add(simulation.snapshot(), str(action))
    return recording


def _ignore(_value: object) -> None: ...


# -- one task --------------------------------------------------------------------------------------------------


def told_to_the_aligner(*told: str, num_channels: int = 3) -> Figures:
    """A line for each thing that a channel brings, such as "0 barrier 1", "2 cancels 1" and "1 ends"."""
    aligner, rows = BarrierAligner(num_channels), []
    for words in told:
        decided = ", ".join(map(_decision, aligner.on_event(*brought(words))))
        waits = ", ".join(map(str, sorted(aligner.arrived)))
        rows.append((f"channel {words}", decided or "-", waits or "-"))
    return Figures("the aligner of one task", ("", "what is done", "channels that wait"), tuple(rows))


def brought(words: str, alignment: Alignment = Alignment.ALIGNED) -> tuple[int, Event]:
    """The channel and its event in "0 barrier 1", "2 cancels 1" or "1 ends"."""
    channel, what, *number = words.split()
    match what:
        case "barrier":
            return int(channel), CheckpointBarrier(int(*number), 0, alignment=alignment)
        case "cancels":
            return int(channel), CancelCheckpointMarker(int(*number))
        case _:
            return int(channel), EndOfPartition()


def _decision(decision: Decision) -> str:
    match decision:
        case ResumeChannel(channel):
            return f"{channel} goes on"
        case Complete(barrier):
            return f"cut {barrier.checkpoint_id}"
        case Abort(number, reason):
            return f"abort {number} ({reason.name})"
    return str(decision)


# -- after a crash ---------------------------------------------------------------------------------------------


class _CutsAtTheFirst(BarrierAligner):
    """An aligner that cuts its task at the first barrier, and lets nobody wait: which is wrong."""

    def on_barrier(self, channel: int, barrier: CheckpointBarrier) -> list[Decision]:
        is_first = barrier.checkpoint_id > self.latest_checkpoint_id
        self.latest_checkpoint_id = max(self.latest_checkpoint_id, barrier.checkpoint_id)
        go_on: list[Decision] = [ResumeChannel(channel)]
        return [*go_on, Complete(barrier)] if is_first else go_on


def _airports() -> list[str]:
    return [flight["origin"] for flight in sample_flights(_NUM_FLIGHTS)]


def after_a_crash() -> Figures:
    """Flights of each airport, counted in a job that crashed, where its tasks are cut in three ways."""
    airports = _airports()
    true = Counter(airports)
    ways = {
        "cut at the first barrier": count_through_a_crash(airports, aligner=_CutsAtTheFirst),
        "cut at the last, nobody waits": count_through_a_crash(airports, _AT_LEAST_ONCE),
        "cut at the last, who has it waits": count_through_a_crash(airports),
    }
    rows = [("(as they were)", *(str(true[name]) for name in sorted(true)), str(true.total()), "")]
    for way, found in ways.items():
        off = found.total - true.total()
        verdict = "✓" if found.counts == true else f"✗ {abs(off)} {'lost' if off < 0 else 'twice'}"
        rows.append((way, *(str(found.counts[name]) for name in sorted(true)), str(found.total), verdict))
    title = f"{len(airports)} flights, one crash, and on from the last checkpoint"
    return Figures(title, ("the task is", *sorted(true), "all", ""), tuple(rows))


def crash_recorded() -> Recording:
    """The same job, aligned: up to its crash, and on from its checkpoint to its end."""
    with crashing_run(_airports(), _ignore, _EXACTLY_ONCE) as simulation:
        start = simulation.snapshot()
        recording = Recording(topology(start))
        recording.add(start, "start")
        while (action := simulation.step()) is not None:
            if simulation.num_steps % _EVERY == 0:
                recording.add(simulation.snapshot(), str(action))
            if simulation.num_steps == CRASH_STEP:
                simulation.crash()
                recording.add(simulation.snapshot(), "a TaskManager is gone")
        recording.add(simulation.snapshot(), "the end")
    return recording


# -- what holds a barrier up -------------------------------------------------------------------------------------

_PACE = 8


def barriers_behind(pace: int = _PACE) -> Figures:
    """Rounds until a barrier is through to each of four readers on one connection, of which the first is slow.

    It reads a buffer every `pace` rounds, the others one each round; when the barrier is sent all that lies between is
    full.
    """
    rows = []
    for credit_based in (False, True):
        rounds = barriers_through(pace, credit_based=credit_based)
        rows.append(("with credits" if credit_based else "without credits", *map(str, rounds)))
    heads = ("", "slow reader", *(f"reader {number}" for number in range(1, len(rows[0]) - 1)))
    return Figures("rounds until the barrier is through", heads, tuple(rows))
