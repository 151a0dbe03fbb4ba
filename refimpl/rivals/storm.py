"""Storm: high and low water on the receive queues, a flag in a coordination store, spouts that stop and go.

Source:  DisruptorQueue, WorkerBackpressureThread (org.apache.storm.utils), worker.clj, executor.clj, cluster.clj and
         defaults.yaml, Storm 1.0.3; the mechanism is STORM-886
Differs: one record is one entry of a queue, which Storm fills in batches; the transfer queue holds what is on the wire
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from refimpl.rivals.coordination import CoordinationStore
from refimpl.rivals.rival import Delayed, Levels
from refimpl.rivals.workload import NUM_BRANCHES, SINK, SOURCE

__all__ = [
    "HIGH_WATER",
    "LOW_WATER",
    "POLL_MS",
    "SPOUT_WAIT_MS",
    "DisruptorQueue",
    "Storm",
    "StormWorker",
]

QUEUE_SIZE = 1_024  # topology.executor.receive.buffer.size, topology.transfer.buffer.size
HIGH_WATER = 0.9  # backpressure.disruptor.high.watermark
LOW_WATER = 0.4  # backpressure.disruptor.low.watermark
POLL_MS = 100.0  # WorkerBackpressureThread waits so long for a callback, and looks then in any case
REFRESH_MS = 30_000.0
"""task.backpressure.poll.secs, since 1.0.3: the directory is read again in any case, the answer to STORM-1949."""
SPOUT_WAIT_MS = 1.0  # topology.sleep.spout.wait.strategy.time.ms
_SESSION_TIMEOUT_MS = 20_000.0  # storm.zookeeper.session.timeout
_STORE_MS = 2.0  # there and back again
_FLAGS = "/backpressure/job"


class DisruptorQueue:
    """A bounded queue with an overflow list that is not: `add` never waits. Population is what both hold.

    Reaching the high water mark it throttles and calls `on_change`; at the low one, seen only when something is
    taken out, it ends that and calls again.

    Source:  DisruptorQueue.ThreadLocalJustInserter.add, consumeBatchToCursor, 1.0.3
    """

    def __init__(self, size: int = QUEUE_SIZE, on_change: Callable[[], None] = lambda: None) -> None:
        self.records: deque[float] = deque()
        self.high, self.low = int(size * HIGH_WATER), int(size * LOW_WATER)
        self.is_throttling = False
        self.on_change = on_change
        self._size = size

    @property
    def population(self) -> int:
        return len(self.records)

    @property
    def num_overflow(self) -> int:
        return max(0, self.population - self._size)

    @property
    def is_full(self) -> bool:
        return self.population >= self._size

    def add(self, record: float) -> None:
        """Publish a record, then look at the population."""
        self.looked(self.publish(record))

    def publish(self, record: float) -> int:
        """The first half of `add`; the answer is the population it will act upon."""
        self.records.append(record)
        return self.population

    def looked(self, population: int) -> None:
        """A record was added, and then the queue held so many: at the high mark or above it throttles.

        Nothing keeps a consumer from emptying the queue in between; it is this number that counts.
        """
        if population >= self.high and not self.is_throttling:
            self.is_throttling = True
            self.on_change()

    def consume(self) -> float | None:
        """Take the oldest record out; `None` if there is none, and then nothing changes.

        What is left at the low mark or below ends the throttling.
        """
        if not self.records:
            return None
        record = self.records.popleft()
        if self.population <= self.low and self.is_throttling:
            self.is_throttling = False
            self.on_change()
        return record


class StormWorker:
    """One worker: its flag in the store if any of its queues throttles, and whether its spouts must stand still.

    It looks at its queues when one calls, and every `POLL_MS`; it writes only when the flag changes. It hears of
    others through a watch on the directory, and reads the directory again for each notice, and every `refresh_ms`.
    While it `is_deaf`, notices are lost on their way to it.
    """

    def __init__(
        self, name: str, store: CoordinationStore, queues: Sequence[DisruptorQueue], refresh_ms: float = REFRESH_MS
    ) -> None:
        self.is_throttled = False
        self.is_deaf = False
        self.num_writes = 0
        self._store = store
        self._name = name
        self._session = store.connect(_SESSION_TIMEOUT_MS, 0.0)
        self._queues = queues
        self._flag = False
        self._is_called = False
        self._next_poll_ms = POLL_MS
        self._refresh = refresh_ms, refresh_ms
        self._calls: Delayed[Callable[[], None]] = Delayed(_STORE_MS)
        for queue in queues:
            queue.on_change = self.call
        if not store.exists(self._session, _FLAGS):
            store.create(self._session, "/backpressure")
            store.create(self._session, _FLAGS)
        self._read()

    @property
    def next_tick_ms(self) -> float:
        if self._is_called:
            return 0.0
        return min(self._next_poll_ms, self._calls.next_ms)

    def call(self) -> None:
        """Wake the thread that looks at the queues."""
        self._is_called = True

    def on_tick(self, now_ms: float) -> None:
        for call in self._calls.take(now_ms):
            call()
        if self._is_called or now_ms >= self._next_poll_ms:
            self._is_called, self._next_poll_ms = False, now_ms + POLL_MS
            self._store.hear(self._session, now_ms)
            self._check(now_ms)
        every_ms, next_ms = self._refresh
        if now_ms >= next_ms:  # at the next look, which is soon enough
            self._refresh = every_ms, now_ms + every_ms
            self._calls.put(self._read, now_ms)

    def hear_notices(self, now_ms: float) -> None:
        """Read the directory again if a watch has fired; the answer comes later."""
        if self._session.take_notices() and not self.is_deaf:
            self._calls.put(self._read, now_ms)

    def _check(self, now_ms: float) -> None:
        flag = any(queue.is_throttling for queue in self._queues)
        if flag != self._flag:
            self._flag = flag
            self.num_writes += 1
            self._calls.put(partial(self._write, flag), now_ms)

    def _write(self, flag: bool) -> None:
        path = f"{_FLAGS}/{self._name}"
        is_there = self._store.exists(self._session, path)
        if flag and not is_there:
            self._store.create(self._session, path, ephemeral=True)
        elif is_there and not flag:
            self._store.delete(self._session, path)

    def _read(self) -> None:
        self.is_throttled = bool(self._store.children(self._session, _FLAGS, watch=True))


class Storm:
    """A topology on three workers: any worker's flag stops all spouts, those of the innocent branch too."""

    name = "Storm"

    def __init__(
        self, refresh_ms: float = REFRESH_MS, make_queue: Callable[[], DisruptorQueue] = DisruptorQueue
    ) -> None:
        self.store = CoordinationStore()
        self.receive = {(stage, branch): make_queue() for stage in range(1, SINK + 1) for branch in range(NUM_BRANCHES)}
        self.transfer = [make_queue() for _ in range(SINK)]
        self.workers = [
            StormWorker(
                f"worker-{stage}",
                self.store,
                [queue for (of, _), queue in self.receive.items() if of == stage] + self.transfer[stage : stage + 1],
                refresh_ms,
            )
            for stage in range(SINK + 1)
        ]

    @property
    def next_tick_ms(self) -> float:
        return min(worker.next_tick_ms for worker in self.workers)

    def on_tick(self, now_ms: float) -> None:
        for worker in self.workers:
            worker.on_tick(now_ms)
        for worker in self.workers:
            worker.hear_notices(now_ms)

    def may_emit(self, branch: int, now_ms: float) -> float:
        is_stopped = self.workers[SOURCE].is_throttled or self.transfer[SOURCE].is_full
        return SPOUT_WAIT_MS if is_stopped else 0.0

    def can_enqueue(self, stage: int, branch: int) -> bool:
        return True  # what does not fit goes into the overflow list

    def enqueue(self, stage: int, branch: int, record: float, now_ms: float) -> None:
        self.transfer[stage].add(record)

    def arrive(self, stage: int, branch: int, record: float, now_ms: float) -> None:
        self.transfer[stage - 1].consume()
        self.receive[stage, branch].add(record)

    def dequeue(self, stage: int, branch: int, now_ms: float) -> float | None:
        return self.receive[stage, branch].consume()

    def measure(self) -> Levels:
        queues = [*self.receive.values(), *self.transfer]
        unbounded = sum(queue.num_overflow for queue in queues)
        return Levels(sum(queue.population for queue in queues) - unbounded, unbounded)
