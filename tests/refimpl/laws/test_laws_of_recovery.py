"""The laws of what a job remembers: each holds while it crashes and goes on, and each catches what no other does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from refimpl.checkpoint import CompletedCheckpoint, CompletedCheckpoints
from refimpl.consumer import ChannelCapture, NetworkInput
from refimpl.consumer.channel_capture import InputCapture
from refimpl.drivers import Simulation
from refimpl.drivers.file_transactions import FileSink
from refimpl.drivers.store_calls import StoreCalls
from refimpl.job import StreamEnvironment
from refimpl.laws import CaptureLaw, LivenessLaw, StateLaw, StoreLaw, TimersLaw, TransactionsLaw
from refimpl.memory.promises import SegmentPromises
from refimpl.producer import RecordWriter
from refimpl.records.elements import Watermark
from refimpl.records.events import CheckpointBarrier, Event
from refimpl.state import KeyGroupedBytes, MemoryStore
from refimpl.state.subtask_state import OperatorStates, RestoredStates
from refimpl.task import TimeDomain
from refimpl.task.checkpoints import SubtaskCheckpoints
from refimpl.task.process_operators import KeyedProcessOperator
from refimpl.task.snapshotting import SubtaskSnapshotting
from refimpl.task.source import SourceInput
from refimpl.task.time_service import ProcessingTimers
from refimpl.task.timers import TimerQueue
from refimpl.task.two_phase_sink import TwoPhaseCommitSink
from tests import test_exactly_once, test_unaligned

Patch = pytest.MonkeyPatch
Watched = tuple[Simulation, Callable[[], None], Callable[[], None]]
SEEDS = range(2)
MOST_STEPS = 4_000
ENDS_WITHIN_MS = 3_000.0


def ignored(*_given: Any) -> None:
    """Where a result goes that no test looks at: only the laws do."""


def plain(seed: int, _folder: Path) -> Watched:
    """Keyed state and timers of both kinds, on two TaskManagers."""
    run = test_exactly_once.simulation(test_exactly_once.buckets(ignored), seed=seed, num_task_managers=2)
    return run, ignored, ignored


def unaligned(seed: int, _folder: Path) -> Watched:
    """Barriers that overtake what waits, and that capture it for long."""
    return test_unaligned.simulation(test_unaligned.keyed(ignored), num_task_managers=2, seed=seed), ignored, ignored


def of_one_key(seed: int, _folder: Path) -> Watched:
    """Barriers that overtake, where all buffers of an output may wait for one of its six consumers."""
    job = test_unaligned.environment(floating_buffers_per_gate=0, source_batch=8)
    first, second = (job.from_collection([("one", each) for each in range(60)], name=name) for name in ("a", "b"))
    numbered = first.union(second).key_by(lambda value: value[0]).process(test_unaligned.Numbered(), name="numbered")
    numbered.set_parallelism(6).sink(ignored)
    return test_unaligned.simulation(job, num_task_managers=2, seed=seed), ignored, ignored


def into_files(seed: int, folder: Path) -> Watched:
    """Transactions, and a store that is looked at."""
    store, transactions = MemoryStore(), TransactionsLaw()
    stored = StoreLaw(store, "job")
    job: StreamEnvironment = test_exactly_once.environment(checkpoints_retained=2)
    values = job.from_collection(range(60), name="numbers").map(abs, name="same")
    values.sink_to(transactions.sink(FileSink(folder / str(seed))), name="files")
    run = test_exactly_once.simulation(job, store, seed=seed, num_task_managers=2)

    def check() -> None:
        stored.check()
        transactions.check(stored)

    def check_end() -> None:
        stored.check_end()
        transactions.check_end(stored)

    return run, check, check_end


def keep_all(job: Callable[[int, Path], Watched], folder: Path, num_crashes: int = 2) -> int:
    """Run a job with some crashes, by seeds, and check all laws after each step; how many restores there were."""
    num_restores = 0
    for seed in SEEDS:
        run, check, check_end = job(seed, folder)
        chance, liveness = Random(f"laws {seed}"), LivenessLaw(ENDS_WITHIN_MS)
        crashes = sorted(chance.randrange(40, 200) for _ in range(num_crashes))
        while run.num_steps < MOST_STEPS and (not run.is_done or run.enabled()):
            if crashes and run.num_steps >= crashes[0] and not run.is_done:
                crashes.pop(0)
                run.crash()
                liveness.struck(run.time_ms)
            if run.step() is None:
                break
            check()
            liveness.look(run.time_ms)
        if run.is_done:
            check_end()
        assert run.recovery is not None
        num_restores += run.recovery.checkpoints.stats.snapshot().counts.num_restored
    return num_restores


@pytest.mark.parametrize(("job", "num_restores"), [(plain, 2), (unaligned, 2), (of_one_key, 0), (into_files, 2)])
def test_all_hold(job: Callable[[int, Path], Watched], num_restores: int, tmp_path: Path) -> None:
    assert keep_all(job, tmp_path) >= num_restores


# -- broken on purpose -----------------------------------------------------------------------------


def a_source_goes_on_a_little_further_on(patch: Patch) -> None:
    seek = SourceInput.seek
    patch.setattr(SourceInput, "seek", lambda self, position, mark: seek(self, max(0, position - 1), mark))


def timers_are_not_restored(patch: Patch) -> None:
    restore = OperatorStates.restore

    def mutant(self: OperatorStates, restored: RestoredStates) -> None:
        restore(self, RestoredStates(restored.keyed, {}, restored.elements, restored.others, restored.trust_pickle))

    patch.setattr(OperatorStates, "restore", mutant)


def a_key_group_is_not_restored(patch: Patch) -> None:
    restore = OperatorStates.restore

    def without_the_first(piece: KeyGroupedBytes) -> KeyGroupedBytes:
        first = next((number for number, each in enumerate(piece.groups) if each), None)
        groups = [b"" if number == first else each for number, each in enumerate(piece.groups)]
        return KeyGroupedBytes(piece.types, piece.key_groups, groups)

    def mutant(self: OperatorStates, restored: RestoredStates) -> None:
        keyed = {name: [without_the_first(each) for each in pieces] for name, pieces in restored.keyed.items()}
        restore(
            self,
            RestoredStates(keyed, restored.timers, restored.elements, restored.others, restored.trust_pickle),
        )

    patch.setattr(OperatorStates, "restore", mutant)


def state_becomes_bytes_when_it_is_written(patch: Patch) -> None:
    """And not at the cut: while the snapshot waits for what is in flight, the task goes on."""
    take, hand = SubtaskCheckpoints._take, SubtaskCheckpoints._hand_to_driver

    def mutant(self: SubtaskCheckpoints, checkpoint_id: int) -> None:
        for operator in self._operators:
            take(self, checkpoint_id, operator)
        hand(self, checkpoint_id)

    patch.setattr(SubtaskCheckpoints, "_take", ignored)
    patch.setattr(SubtaskCheckpoints, "_hand_to_driver", mutant)


def one_timer_that_is_due_is_left(patch: Patch) -> None:
    """Timers fire up to a little before the watermark."""

    def mutant(self: KeyedProcessOperator, watermark: Watermark) -> None:
        self.current_watermark = watermark.timestamp
        for timestamp, key, _ in self.keyed.event_timers.advance(watermark.timestamp - 5):
            self._fire(timestamp, key, TimeDomain.EVENT_TIME)
        self.output.emit_watermark(watermark)

    patch.setattr(KeyedProcessOperator, "process_watermark", mutant)


def a_timer_that_was_registered_twice_fires_twice(patch: Patch) -> None:
    register = TimerQueue.register

    def mutant(self: TimerQueue, timestamp: int, key: Any, namespace: Any) -> None:
        before = len(self)
        register(self, timestamp, key, namespace)
        if len(self) == before and self._heap:
            self._heap.append(next(each for each in self._heap if each[0] == timestamp and each[3] == key))
            self._heap.sort()

    patch.setattr(TimerQueue, "register", mutant)


def only_one_timer_of_processing_time_has_a_deadline(patch: Patch) -> None:
    def mutant(self: ProcessingTimers, timestamp_ms: int) -> None:
        self._armed_ms = None
        for timer in self.queue.advance(timestamp_ms):
            self._on_timer(*timer)

    patch.setattr(ProcessingTimers, "_fire", mutant)


def copies_are_kept_until_the_next_checkpoint(patch: Patch) -> None:
    begin = InputCapture.begin

    def begin_anew(self: InputCapture, checkpoint_id: int) -> None:
        for channel in self.channels:
            channel.copies = []
        begin(self, checkpoint_id)

    patch.setattr(ChannelCapture, "stop", lambda self: setattr(self, "is_copying", False))
    patch.setattr(InputCapture, "begin", begin_anew)


def barriers_wait_their_turn(patch: Patch) -> None:
    """At the producer; the consumer copies all that comes before them."""
    take_event = NetworkInput._take_event

    def overtake(self: RecordWriter, event: CheckpointBarrier) -> list[bytes]:
        self.broadcast_event(event)
        return [b"" for _ in self.partition.subpartitions]

    def mutant(self: NetworkInput, channel: int, event: Event) -> bool:
        if isinstance(event, CheckpointBarrier) and self.capture is not None:
            self.capture.channels[channel].note_barrier(event.checkpoint_id)
        return take_event(self, channel, event)

    patch.setattr(RecordWriter, "overtake", overtake)
    patch.setattr(NetworkInput, "_take_event", mutant)


def who_has_ended_does_not_hear_of_the_final_checkpoint(patch: Patch) -> None:
    """It is told again and again, and waits."""
    notify = SubtaskSnapshotting.notify_complete

    def mutant(self: SubtaskSnapshotting, checkpoint_id: int) -> None:
        if not self._has_ended:
            notify(self, checkpoint_id)

    patch.setattr(SubtaskSnapshotting, "notify_complete", mutant)


def promises_are_not_taken_back(patch: Patch) -> None:
    withdraw = SegmentPromises.withdraw
    patch.setattr(SegmentPromises, "withdraw", lambda self, num_segments: withdraw(self, num_segments - 1))


def a_manifest_outlives_its_files(patch: Patch) -> None:
    delete = StoreCalls.delete

    def mutant(self: StoreCalls, keys: Any) -> None:
        delete(self, [key for key in keys if not key.endswith("/_metadata")])

    patch.setattr(StoreCalls, "delete", mutant)


def what_is_not_kept_stays(patch: Patch) -> None:
    """Older checkpoints are dropped from the list, and nobody deletes them."""

    def mutant(self: CompletedCheckpoints, completed: CompletedCheckpoint) -> list[CompletedCheckpoint]:
        plain_add(self, completed)
        return []

    plain_add = CompletedCheckpoints.add
    patch.setattr(CompletedCheckpoints, "add", mutant)


def a_sink_commits_at_the_snapshot(patch: Patch) -> None:
    snapshot = TwoPhaseCommitSink.snapshot

    def mutant(self: TwoPhaseCommitSink, checkpoint_id: int) -> Any:
        state = snapshot(self, checkpoint_id)
        self._transactions.commit(dict(state.pending)[checkpoint_id])
        return state

    patch.setattr(TwoPhaseCommitSink, "snapshot", mutant)


def a_sink_commits_only_what_it_is_told_of(patch: Patch) -> None:
    restore = TwoPhaseCommitSink.restore
    patch.setattr(TwoPhaseCommitSink, "restore", lambda self, _states=(): restore(self))


def without(law: type, *names: str) -> Callable[[Patch], None]:
    """Take a law away."""

    def take(patch: Patch) -> None:
        for name in names:
            patch.setattr(law, name, ignored)

    return take


def without_memory(patch: Patch) -> None:
    patch.setattr("refimpl.drivers.simulation.deployer.check_given_back", ignored)


STATE = without(StateLaw, "_check")
TIMERS = without(TimersLaw, "look")
CAPTURE = without(CaptureLaw, "_look_at")
LIVENESS = without(LivenessLaw, "look")
STORE = without(StoreLaw, "check", "check_end")
TRANSACTIONS = without(TransactionsLaw, "check", "check_end", "moves")

MUTANTS: dict[Callable[[Patch], None], tuple[Callable[[int, Path], Watched], str, Callable[[Patch], None]]] = {
    a_source_goes_on_a_little_further_on: (plain, "does not begin with what it had at the cut", STATE),
    timers_are_not_restored: (plain, "timers state", STATE),
    a_key_group_is_not_restored: (plain, "keyed state", STATE),
    state_becomes_bytes_when_it_is_written: (unaligned, "does not begin with what it had at the cut", STATE),
    one_timer_that_is_due_is_left: (plain, "have not fired", TIMERS),
    a_timer_that_was_registered_twice_fires_twice: (plain, "timers were registered", TIMERS),
    only_one_timer_of_processing_time_has_a_deadline: (plain, "has not fired", TIMERS),
    copies_are_kept_until_the_next_checkpoint: (unaligned, "for no checkpoint", CAPTURE),
    barriers_wait_their_turn: (of_one_key, "it has credit for", CAPTURE),
    who_has_ended_does_not_hear_of_the_final_checkpoint: (plain, "nothing has struck for", LIVENESS),
    promises_are_not_taken_back: (plain, "are promised", without_memory),
    a_manifest_outlives_its_files: (into_files, "which nobody can find", STORE),
    what_is_not_kept_stays: (into_files, "the job has finished, and nothing leads to", STORE),
    a_sink_commits_at_the_snapshot: (into_files, "pending in no complete checkpoint", TRANSACTIONS),
    a_sink_commits_only_what_it_is_told_of: (into_files, "never committed", TRANSACTIONS),
}


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_a_mutant_breaks_one_law_and_no_other(
    mutate: Callable[[Patch], None], monkeypatch: Patch, tmp_path: Path
) -> None:
    job, said, take_away = MUTANTS[mutate]
    mutate(monkeypatch)
    with pytest.raises(AssertionError, match=said):
        keep_all(job, tmp_path / "with")
    take_away(monkeypatch)
    keep_all(job, tmp_path / "without")
