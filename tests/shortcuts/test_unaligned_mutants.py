"""What is easily forgotten of what is in flight: each time a job loses a record, or tells one twice.

Each mutant breaks one rule of `channel_capture`, and is run where only that rule matters. That events are not copied is
a matter of `test_overtaking`: no job here has any that a barrier passes. Where nothing crashes no result is wrong, and
only the law of cuts sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

import pytest

from refimpl.config import FlinkVersion
from refimpl.consumer import ChannelCapture, LocalInputChannel, NetworkInput, RecoveredInputChannel
from refimpl.consumer.connected_channel import ConnectedChannel
from refimpl.errors import SluiceError
from refimpl.laws import CutLaw
from refimpl.memory import Buffer, BufferConsumer
from refimpl.producer import SubpartitionQueue, result_partition
from refimpl.shortcuts.input import FastNetworkInput
from refimpl.shortcuts.partition import FastLocalInputChannel
from tests.test_unaligned import JOBS, check_exact, in_flight_of, simulation

Patch = pytest.MonkeyPatch
NUM_RECORDS = 30


def goes_on_behind_its_barrier(patch: Patch) -> None:
    """A channel is copied although its barrier has come."""
    patch.setattr(ChannelCapture, "note_barrier", lambda self, checkpoint_id, number=0: None)


def forgets_half_a_record(patch: Patch) -> None:
    """What a deserializer has begun stays there."""
    plain = NetworkInput._in_flight

    def mutant(self: NetworkInput) -> Iterator[tuple[int, bytes]]:
        begun = [b"" if each is None else each.get_unconsumed() for each in self._deserializers]
        for channel, data in plain(self):
            if data != begun[channel]:
                yield channel, data

    patch.setattr(NetworkInput, "_in_flight", mutant)


def forgets_what_is_decoded_ahead(patch: Patch) -> None:
    """A run of values that nobody has taken yet is left out."""
    patch.setattr(FastNetworkInput, "_decoded_ahead", lambda self: ())


def captures_a_local_channel_at_arrival(patch: Patch) -> None:
    """What waits in a local channel is copied here, and by its producer too."""

    def mutant(self: LocalInputChannel, checkpoint_id: int) -> None:
        assert self.capture is not None
        for each in self.view.subpartition.queue:  # type: ignore[attr-defined]
            if each.is_buffer:
                self.capture.copy(each.unread)
        self.capture.begin(checkpoint_id)

    for kind in (LocalInputChannel, FastLocalInputChannel):
        patch.setattr(kind, "begin_capture", mutant)


def copies_at_arrival_and_in_the_mail(patch: Patch) -> None:
    """What comes between the barrier and the snapshot is copied when it comes, and again from the queue."""
    plain = ConnectedChannel._queue

    def mutant(self: ConnectedChannel, buffer: Buffer | None, sizes: tuple[int, ...]) -> None:
        if self.capture is not None and buffer is not None and buffer.is_buffer and not self.capture.is_copying:
            self.capture.copy(buffer.data)
        plain(self, buffer, sizes)

    patch.setattr(ConnectedChannel, "_queue", mutant)
    patch.setattr(ChannelCapture, "stop", lambda self: setattr(self, "is_copying", False))


def reads_the_real_channel_too_early(patch: Patch) -> None:
    """What comes from the producer is read before what was recovered."""
    plain = RecoveredInputChannel.poll

    def poll(self: RecoveredInputChannel) -> Any:
        early = self.channel.poll()
        return plain(self) if early is None else early._replace(is_more_available=True)

    patch.setattr(RecoveredInputChannel, "poll", poll)


def forgets_what_the_barrier_passes(patch: Patch) -> None:
    """What waits in the outputs is not copied."""
    plain = result_partition.overtake

    def mutant(subpartition: SubpartitionQueue, event: BufferConsumer) -> bytes:
        return plain(subpartition, event)[:0]

    patch.setattr(result_partition, "overtake", mutant)


def forgets_what_is_queued(patch: Patch) -> None:
    """What a remote channel has received is not copied."""
    plain = ChannelCapture.begin

    def mutant(self: ChannelCapture, checkpoint_id: int, queued: Iterable[Any] = ()) -> None:
        plain(self, checkpoint_id, ())

    patch.setattr(ChannelCapture, "begin", mutant)


def forgets_what_still_comes(patch: Patch) -> None:
    """What comes between the snapshot and the channel's own barrier is not copied."""
    plain = ChannelCapture.begin

    def mutant(self: ChannelCapture, checkpoint_id: int, queued: Iterable[Any] = ()) -> None:
        plain(self, checkpoint_id, queued)
        self.is_copying = False

    patch.setattr(ChannelCapture, "begin", mutant)


MUTANTS = {
    goes_on_behind_its_barrier: ("wide", 2, False),
    forgets_half_a_record: ("wide", 1, False),
    forgets_what_is_decoded_ahead: ("fixed_width", 1, True),
    captures_a_local_channel_at_arrival: ("wide", 1, False),
    copies_at_arrival_and_in_the_mail: ("wide", 2, False),
    reads_the_real_channel_too_early: ("wide", 2, False),
    forgets_what_the_barrier_passes: ("keyed", 1, False),
    forgets_what_is_queued: ("wide", 2, False),
    forgets_what_still_comes: ("wide", 2, False),
}


def crash_and_go_on(name: str, num_task_managers: int, shortcuts: bool, seed: int) -> int:
    """Let a job crash a few times, and check what it gives; the bytes that it went on with."""
    results: list[Any] = []
    version = list(FlinkVersion)[seed % 2]
    job = JOBS[name](
        results.append,
        num_records=NUM_RECORDS,
        shortcuts=shortcuts,
        flink_version=version,
        tolerable_failed_checkpoints=99,
    )
    run = simulation(job, num_task_managers=num_task_managers, seed=seed)
    chance, in_flight = Random(f"{name} {seed}"), 0
    for _ in range(4):
        run.run(chance.randrange(40, 150))
        if run.is_done:
            break
        run.crash()
        while run.enabled() and not run._tasks:
            run.step()
        in_flight += in_flight_of(run)
    run.run(20_000)
    assert run.is_done
    check_exact(name, results, NUM_RECORDS)
    return in_flight


def crash_with_seeds(name: str, num_task_managers: int, shortcuts: bool, num_seeds: int = 8) -> int:
    return sum(crash_and_go_on(name, num_task_managers, shortcuts, seed) for seed in range(num_seeds))


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_a_mutant_is_caught(mutate: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutate(monkeypatch)
    with pytest.raises((AssertionError, SluiceError)):
        crash_with_seeds(*MUTANTS[mutate])


@pytest.mark.parametrize("way", sorted(set(MUTANTS.values())))
def test_the_unchanged_engine_passes_where_the_mutants_must_fail(way: tuple[str, int, bool]) -> None:
    assert crash_with_seeds(*way, num_seeds=2) > 0


# -- without a crash ---------------------------------------------------------------------------------


def run_to_the_end(name: str, num_task_managers: int, shortcuts: bool, num_seeds: int = 4) -> None:
    """The same job, which does not crash: nobody needs what was captured, and every result is right."""
    for seed in range(num_seeds):
        results: list[Any] = []
        job = JOBS[name](results.append, num_records=NUM_RECORDS, shortcuts=shortcuts)
        simulation(job, num_task_managers=num_task_managers, seed=seed).run(20_000)
        check_exact(name, results, NUM_RECORDS)


CAPTURES = [each for each in MUTANTS if each is not reads_the_real_channel_too_early]


@pytest.mark.parametrize("mutate", CAPTURES, ids=lambda mutate: mutate.__name__)
def test_the_law_of_cuts_catches_it_before_anything_goes_wrong(
    mutate: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    mutate(monkeypatch)
    with pytest.raises(AssertionError, match=r"are in flight in it|ends within an element|for no checkpoint"):
        run_to_the_end(*MUTANTS[mutate])


def test_no_other_law_does(monkeypatch: Patch) -> None:
    monkeypatch.setattr(CutLaw, "check", lambda self, history: None)
    forgets_what_is_queued(monkeypatch)
    run_to_the_end(*MUTANTS[forgets_what_is_queued])


@pytest.mark.parametrize("way", sorted(set(MUTANTS.values())))
def test_the_law_of_cuts_holds_where_the_mutants_break_it(way: tuple[str, int, bool]) -> None:
    run_to_the_end(*way)
