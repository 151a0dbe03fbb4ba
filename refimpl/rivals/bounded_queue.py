"""A plain bounded queue before each task, and one connection between two workers: who is full stops all that share it.

Source:  what `queue.Queue(maxsize)` does, with a reader per connection that waits in `put`
"""

from __future__ import annotations

from collections import deque

from refimpl.rivals.rival import FOREVER, Levels
from refimpl.rivals.workload import NUM_BRANCHES, SINK, SOURCE

__all__ = ["CONNECTION_SIZE", "BoundedQueue"]

QUEUE_SIZE = 100
CONNECTION_SIZE = 64
"""Records that the socket buffers of one connection hold, those on the wire too."""


class _Connection:
    """What was sent from one worker to the next and has not come into a queue: a bounded line for all branches."""

    def __init__(self) -> None:
        self.num_on_the_wire = 0
        self.came: deque[tuple[int, float]] = deque()

    def __len__(self) -> int:
        return self.num_on_the_wire + len(self.came)


class BoundedQueue:
    """`put` waits while a queue is full; the reader of a connection that waits reads nothing else."""

    name = "bounded queue"

    def __init__(self) -> None:
        self.queues = {
            (stage, branch): deque[float]() for stage in range(1, SINK + 1) for branch in range(NUM_BRANCHES)
        }
        self.connections = [_Connection() for _ in range(SINK)]

    @property
    def next_tick_ms(self) -> float:
        return FOREVER

    def on_tick(self, now_ms: float) -> None:
        """Nothing here waits for time."""

    def may_emit(self, branch: int, now_ms: float) -> float:
        return 0.0 if self.can_enqueue(SOURCE, branch) else FOREVER

    def can_enqueue(self, stage: int, branch: int) -> bool:
        return len(self.connections[stage]) < CONNECTION_SIZE

    def enqueue(self, stage: int, branch: int, record: float, now_ms: float) -> None:
        self.connections[stage].num_on_the_wire += 1

    def arrive(self, stage: int, branch: int, record: float, now_ms: float) -> None:
        connection = self.connections[stage - 1]
        connection.num_on_the_wire -= 1
        connection.came.append((branch, record))
        self._read(stage)

    def dequeue(self, stage: int, branch: int, now_ms: float) -> float | None:
        queue = self.queues[stage, branch]
        if not queue:
            return None
        record = queue.popleft()
        self._read(stage)
        return record

    def measure(self) -> Levels:
        return Levels(sum(map(len, self.queues.values())) + sum(map(len, self.connections)))

    def _read(self, stage: int) -> None:
        """Take what has come into its queues, in order, until one is full."""
        came = self.connections[stage - 1].came
        while came and len(self.queues[stage, came[0][0]]) < QUEUE_SIZE:
            branch, record = came.popleft()
            self.queues[stage, branch].append(record)
