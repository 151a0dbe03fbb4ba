"""How long a barrier takes to a slow reader, with credits and the way before them.

    python -m tests.bench.alignment            table, in a minute

Two sources on one TaskManager, two sinks on another, over one TCP connection of loopback. One sink takes its time
for each buffer. When all that lies between is full, a barrier leaves the sources. It waits behind what has been sent
before it: with credits that is what the slow reader has room for, and without them what the connection holds besides.

And how long a checkpoint takes where the sinks need ten times as long for a record as the sources: aligned it has to
wait until they have read what lies before its barriers, unaligned that becomes part of it.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import BYTES, StreamRecord
from refimpl.state import MemoryStore
from refimpl.task import IterableReader, Operator
from tests.bench.program import run_program
from tests.support.polling import until

__all__ = ["checkpoint_s", "time_to_complete_s"]

SEGMENT_BYTES = 32 * 1024
RECORD = bytes(SEGMENT_BYTES - 13)  # with its length, tag and time it fills a buffer
PACE_S = 0.005
SLOW_PACE_S = 0.02  # of sinks for which a checkpoint waits: longer than what it costs besides
INTERVAL_MS = 1_500


class SlowEnd(Operator):
    """A sink that takes `pace_s` for each record, and says when the barrier comes."""

    def __init__(self, pace_s: float, wait: Callable[[float], object], tell: Callable[[], None]) -> None:
        self._pace_s, self._wait, self._tell = pace_s, wait, tell

    def process(self, record: StreamRecord) -> None:
        self._wait(self._pace_s)

    def prepare_barrier(self, checkpoint_id: int) -> None:
        if checkpoint_id == 1:
            self._tell()


def time_to_complete_s(*, credit_based: bool) -> float:
    """Seconds from the trigger of a barrier to its last task."""
    has_ended = threading.Event()
    arrived_s: list[float] = []
    num_made: list[None] = []

    def endless(_subtask: int, _parallelism: int) -> IterableReader:
        return IterableReader(iter(lambda: None if has_ended.is_set() else RECORD, None))

    def end() -> SlowEnd:
        num_made.append(None)
        pace_s = PACE_S if len(num_made) == 1 else 0.0
        return SlowEnd(pace_s, has_ended.wait, lambda: arrived_s.append(time.monotonic()))

    config = Config(
        segment_size_bytes=SEGMENT_BYTES, num_buffers=64, credit_based=credit_based, checkpoint_interval_ms=INTERVAL_MS
    )
    environment = StreamEnvironment(config, parallelism=2)
    source = environment.source(endless, "source", BYTES).slot_sharing_group("producers")
    source.rebalance().transform("end", end).slot_sharing_group("consumers")
    with ThreadedRun(environment, num_task_managers=2) as threads:
        began_s = time.monotonic()
        threads.start()
        until(lambda: len(arrived_s) == 2)
        has_ended.set()
    return max(arrived_s) - began_s - INTERVAL_MS / 1_000


def checkpoint_s(*, unaligned: bool) -> float:
    """Seconds from the trigger of a checkpoint to its end, when all buffers are full before sinks ten times slower."""
    has_ended = threading.Event()

    def endless(_subtask: int, _parallelism: int) -> IterableReader:
        return IterableReader(iter(lambda: None if has_ended.wait(SLOW_PACE_S / 10) else RECORD, None))

    config = Config(
        segment_size_bytes=SEGMENT_BYTES, num_buffers=64, checkpoint_interval_ms=INTERVAL_MS, unaligned=unaligned,
        source_batch=1,
    )  # fmt: skip
    environment = StreamEnvironment(config, parallelism=2)
    source = environment.source(endless, "source", BYTES).slot_sharing_group("producers")
    ends = source.rebalance().transform("end", lambda: SlowEnd(SLOW_PACE_S, has_ended.wait, lambda: None))
    ends.slot_sharing_group("consumers")
    with ThreadedRun(environment, num_task_managers=2, store=MemoryStore()) as threads:
        threads.start()
        assert threads.recovery is not None
        stats = threads.recovery.checkpoints.stats
        done = until(lambda: stats.snapshot().latest_completed)
        has_ended.set()
    assert done is not None
    assert done.is_unaligned == unaligned, f"checkpoint {done.checkpoint_id} is not what was asked for"
    assert done.ended_ms is not None, "it is complete"
    return (done.ended_ms - done.triggered_ms) / 1_000


def main(_arguments: Sequence[str] | None = None) -> int:
    """Measure both ways in turn, and print their medians and the ratio within a round."""
    rounds = [(time_to_complete_s(credit_based=True), time_to_complete_s(credit_based=False)) for _ in range(5)]
    with_credits, without = (statistics.median(each) for each in zip(*rounds, strict=True))
    ratio = statistics.median(one / other for one, other in rounds)
    print(f"trigger to completion: {with_credits:.3f} s with credits, {without:.3f} s without; ratio {ratio:.2f}")
    pairs = [(checkpoint_s(unaligned=True), checkpoint_s(unaligned=False)) for _ in range(5)]
    unaligned, waited = (statistics.median(each) for each in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    print(
        f"a checkpoint, sinks 10 times slower: {unaligned:.3f} s unaligned, {waited:.3f} s aligned; ratio {ratio:.2f}"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
