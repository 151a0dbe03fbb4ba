"""The runs behind the figures of unaligned checkpoints: what barriers that overtake copy, and how long they take.

The job is the race of lesson 14 with a slow reader: a source for each of two airports and one task, the board, which is
behind its inputs nearly all the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from course.data.in_flight import in_flight
from course.data.sample import sample_flights
from course.data.statistics import Figures
from course.figures.cuts import brought
from refimpl.checkpoint import CompletedCheckpoint
from refimpl.cluster import FixedDelayRestart
from refimpl.config import Config, FlinkVersion
from refimpl.consumer.barrier_handler import Abort, Captured, Decision, StartCapture
from refimpl.consumer.unaligned import BarrierUnaligner
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Action, StepTask
from refimpl.job import StreamEnvironment
from refimpl.records import Alignment
from refimpl.state import MemoryStore, SectionKind
from refimpl.task import IterableReader
from widgets import Recording
from widgets.view_models import topology

__all__ = [
    "WAYS",
    "Cut",
    "crash_recorded",
    "cuts_of",
    "given_up_recorded",
    "race_recorded",
    "told_to_the_unaligner",
    "what_is_copied",
]

_AIRPORTS = ("JFK", "LGA")
_BOARD = StepTask("board-0")
_STEP_MS = 0.05
_PACE = 4
_NUM_RECORDED = 200
_MOMENTS = 100  # of the race: a few checkpoints
_EVERY = 6  # steps from one moment of a long recording to the next
_CRASH_STEP = 180
_LIMIT_MS = 2
_IN, _OUT = SectionKind.INPUT_IN_FLIGHT, SectionKind.OUTPUT_IN_FLIGHT

WAYS: dict[str, int | None] = {"never": None, "at once": 0, "after 2 ms": 2, "after 1000 ms": 1000}
"""When a barrier overtakes: the milliseconds that it waits before, or `None` if it never does."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One complete checkpoint: how long it was under way, and the bytes that were copied on each side of its channels.

    `input_bytes` waited in the inputs of tasks, `output_bytes` in outputs; both are 0 if no barrier overtook anything.
    """

    checkpoint_id: int
    took_ms: float
    input_bytes: int
    output_bytes: int


def cuts_of(wait_ms: int | None, pace: int = _PACE, num_flights: int = 200) -> list[Cut]:
    """The complete checkpoints of a run in which the board takes one step in `pace`; it depends on nothing else.

    `wait_ms` is how long a barrier waits before it overtakes, in ms, `None` for aligned checkpoints only.
    """
    store = MemoryStore()
    with _simulation(_job(wait_ms, num_flights), store) as run:
        assert run.recovery is not None
        kept = run.recovery.checkpoints.coordinator.completed
        cuts: list[Cut] = []
        while not run.is_done:
            run.step(_next(run, pace))
            latest = None if run.is_done else kept.latest
            if latest is not None and latest.checkpoint_id not in {each.checkpoint_id for each in cuts}:
                cuts.append(_cut(latest, store))  # now: a job that ends takes its checkpoints with it
    return cuts


def _next(run: Simulation, pace: int) -> Action:
    enabled = run.enabled()
    others = [action for action in enabled if action != _BOARD]
    if _BOARD in enabled and (not others or run.num_steps % pace == 0):
        return _BOARD
    return others[run.num_steps % len(others)]


def what_is_copied(pace: int = _PACE) -> Figures:
    """A line for each of `WAYS`: the checkpoints of the run, the longest of them, and the most that one copied."""
    rows = []
    for way, wait_ms in WAYS.items():
        cuts = cuts_of(wait_ms, pace)
        overtook = sum(1 for each in cuts if each.input_bytes + each.output_bytes)
        numbers = (
            str(len(cuts)),
            f"{max(each.took_ms for each in cuts):.2f} ms",
            str(overtook),
            f"{max(each.input_bytes for each in cuts)} B",
            f"{max(each.output_bytes for each in cuts)} B",
        )
        rows.append((way, *numbers))
    heads = ("barriers overtake", "complete", "the longest", "with copies", "most in inputs", "most in outputs")
    return Figures("checkpoints of a job whose reader is slow", heads, tuple(rows))


def _job(wait_ms: int | None, num_flights: int, **options: Any) -> StreamEnvironment:
    flights = sample_flights(20 * num_flights)
    delays = [[each["dep_delay_minutes"] for each in flights if each["origin"] == name] for name in _AIRPORTS]
    of_airport = [each[:num_flights] for each in delays]
    config = Config(
        segment_size_bytes=64,
        num_buffers=24,
        source_batch=4,
        checkpoint_interval_ms=1,
        unaligned=wait_ms is not None,
        aligned_checkpoint_timeout_ms=wait_ms or 0,
        flink_version=FlinkVersion.V2_2,
        **options,
    )
    environment = StreamEnvironment(config, len(_AIRPORTS))
    source = environment.source(lambda subtask, _of: IterableReader(of_airport[subtask]), "airport")
    source.rebalance().sink(_ignore, "board").set_parallelism(1)
    return environment


def _ignore(_value: object) -> None: ...


def _cut(checkpoint: CompletedCheckpoint, store: MemoryStore) -> Cut:
    took_ms = checkpoint.completed_ms - checkpoint.started_ms
    copied = dict.fromkeys((_IN, _OUT), 0)
    for kind, state in in_flight(checkpoint, store):
        copied[kind] += state.num_bytes
    return Cut(checkpoint.checkpoint_id, took_ms, copied[_IN], copied[_OUT])


# -- recorded ------------------------------------------------------------------------------------------------


def race_recorded(overtake: bool) -> Recording:
    """The job behind the table, moment by moment, up to a few checkpoints; its barriers overtake, or never do."""
    with _simulation(_job(0 if overtake else None, _NUM_RECORDED)) as run:
        start = run.snapshot()
        recording = Recording(topology(start))
        recording.add(start, "start")
        for _ in range(_MOMENTS):
            action = _next(run, _PACE)
            run.step(action)
            recording.add(run.snapshot(), str(action))
    return recording


def given_up_recorded() -> Recording:
    """The same with barriers that never overtake, where a checkpoint may take less time than they need."""
    job = _job(None, _NUM_RECORDED, checkpoint_timeout_ms=_LIMIT_MS, tolerable_failed_checkpoints=100)
    return _recorded(job)


def crash_recorded() -> Recording:
    """The same with barriers that overtake: up to a crash, and on from its newest checkpoint to its end."""
    return _recorded(_job(0, _NUM_RECORDED), _CRASH_STEP)


def _recorded(job: StreamEnvironment, crash_step: int | None = None) -> Recording:
    with _simulation(job) as run:
        start = run.snapshot()
        recording = Recording(topology(start))
        recording.add(start, "start")
        while not run.is_done:
            action = _next(run, _PACE)
            run.step(action)
            if run.num_steps % _EVERY == 0 and not run.is_done:
                recording.add(run.snapshot(), str(action))
            if run.num_steps == crash_step:
                run.crash()
                recording.add(run.snapshot(), "a TaskManager is gone")
        recording.add(run.snapshot(), "the end")
    return recording


def _simulation(job: StreamEnvironment, store: MemoryStore | None = None) -> Simulation:
    restart, store = FixedDelayRestart(1, 1.0), store or MemoryStore()
    return Simulation(job, policy="round_robin", store=store, restart=restart, check_every=0, step_ms=_STEP_MS)


# -- one task ------------------------------------------------------------------------------------------------


def told_to_the_unaligner(*told: str, num_channels: int = 3) -> Figures:
    """A line for each thing that a channel brings, such as "0 barrier 1", "2 cancels 1" and "1 ends"."""
    unaligner, rows = BarrierUnaligner(num_channels), []
    for words in told:
        decided = ", ".join(map(_decision, unaligner.on_event(*brought(words, Alignment.UNALIGNED))))
        checkpoint_id, delivered = unaligner.pending()
        copied = [] if checkpoint_id < 0 else sorted({*range(num_channels)} - {*delivered} - unaligner.ended)
        rows.append((f"channel {words}", decided or "-", ", ".join(map(str, copied)) or "-"))
    return Figures("the unaligner of one task", ("", "what is done", "channels that are copied"), tuple(rows))


def _decision(decision: Decision) -> str:
    match decision:
        case StartCapture(barrier):
            return f"cut {barrier.checkpoint_id}, copy from here"
        case Captured(number):
            return f"{number} has all"
        case Abort(number, reason):
            return f"abort {number} ({reason.name})"
    return str(decision)
