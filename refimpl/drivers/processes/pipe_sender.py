"""What goes from the process of a TaskManager to its parent: answers at once, all else in order.

What the tasks have to say gathers while something is sent. Of attempts that are no more nothing is sent, but for the
names of files that nobody wants.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from itertools import groupby
from multiprocessing.connection import Connection

from refimpl.drivers.processes.messages import (
    TICKET_BYTES,
    Answer,
    Committed,
    Ended,
    Results,
    TaskSaid,
    pack,
)
from refimpl.drivers.processes.sent_error import SentError
from refimpl.task.checkpoint_reports import Unwanted

__all__ = ["AttemptOutlet", "PipeSender"]

_MOST_RESULTS_WAITING = 128
_MOST_BYTES_WAITING = 1024 * 1024
_Value = tuple[int, tuple[int, int, bytes]]


class PipeSender:
    """Sends answers to the parent at once, and the rest in batches that gather while one batch is sent."""

    def __init__(self, answers: Connection, results: Connection) -> None:
        self._answers = answers
        self._results = results
        self._answering = threading.Lock()
        self._changed = threading.Condition()
        self._waiting: deque[_Value | Committed | TaskSaid | Ended] = deque()
        self._num_bytes = 0
        self._is_sending = False
        self._closed: set[int] = set()  # deployments
        self._is_closed = False  # all of them
        threading.Thread(target=self._run, name="results", daemon=True).start()

    def put(self, generation: int, node_id: int, subtask: int, value: bytes) -> None:
        """Send one value, soon; wait while too many have gathered: the parent's sinks are slow. None after `close`."""
        with self._changed:
            if self._has_room_for(generation):
                self._waiting.append((generation, (node_id, subtask, value)))
                self._added(len(value))

    def commit(self, committed: Committed) -> None:
        """Send what a checkpoint that counts has of a sink, as `put`."""
        with self._changed:
            if self._has_room_for(committed.generation):
                self._waiting.append(committed)
                self._added(len(committed.values))

    def say(self, message: TaskSaid | Ended) -> None:
        """Send what a task has done, or that all have ended, behind what has been put; it does not wait."""
        with self._changed:
            if self._is_wanted(message.generation) or _names_a_file(message):
                self._waiting.append(message)
                self._added(0)

    def answer(self, ticket: bytes, answer: Answer | Ended) -> None:
        """Send the answer to the request with this number."""
        data = ticket + pack(answer)
        with self._answering, suppress(OSError):  # the parent is gone; the thread that hears requests sees it
            self._answers.send_bytes(data)

    def fail(self, generation: int, error: BaseException) -> None:
        """Send why the tasks have ended, past all that waits."""
        self.answer(bytes(TICKET_BYTES), Ended(generation, SentError.of(error)))

    def close(self, generation: int | None = None) -> None:
        """Attempts of this deployment, or of any, have nothing more to say: end all their waits."""
        with self._changed:
            if generation is None:
                self._is_closed = True
            else:
                self._closed.add(generation)
            self._waiting = deque(
                each for each in self._waiting if self._is_wanted(_generation_of(each)) or _names_a_file(each)
            )
            self._num_bytes = sum(map(_num_bytes_of, self._waiting))
            self._changed.notify_all()

    def _is_wanted(self, generation: int) -> bool:
        return not self._is_closed and generation not in self._closed

    def _has_room_for(self, generation: int) -> bool:
        """Wait for room; false if there will be none, since the deployment is closed."""
        while self._is_wanted(generation) and (
            len(self._waiting) >= _MOST_RESULTS_WAITING or self._num_bytes >= _MOST_BYTES_WAITING
        ):
            self._changed.wait()
        return self._is_wanted(generation)

    def _added(self, num_bytes: int) -> None:
        self._num_bytes += num_bytes
        if not self._is_sending:
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_sending = False
                self._changed.notify_all()
                while not self._waiting:
                    self._changed.wait()
                waiting, self._waiting = self._waiting, deque()
                self._num_bytes = 0
                self._is_sending = True
                self._changed.notify_all()
            with suppress(OSError):  # as above
                for generation, values in groupby(waiting, lambda each: each[0] if isinstance(each, tuple) else None):
                    if generation is None:
                        for message in values:
                            self._results.send_bytes(pack(message))
                    else:
                        batch = Results(generation, [each[1] for each in values if isinstance(each, tuple)])
                        self._results.send_bytes(pack(batch))


class AttemptOutlet:
    """The way out for the sinks of one generation of attempts."""

    def __init__(self, sender: PipeSender, generation: int) -> None:
        self._sender = sender
        self._generation = generation

    def put(self, node_id: int, subtask: int, value: bytes) -> None:
        """Send one value of a sink, as `pack` makes it."""
        self._sender.put(self._generation, node_id, subtask, value)

    def commit(self, node_id: int, transaction: str, values: object) -> None:
        """Send the values of a transaction whose checkpoint counts."""
        self._sender.commit(Committed(self._generation, node_id, transaction, pack(values)))


def _generation_of(waiting: _Value | Committed | TaskSaid | Ended) -> int:
    return waiting[0] if isinstance(waiting, tuple) else waiting.generation


def _num_bytes_of(waiting: _Value | Committed | TaskSaid | Ended) -> int:
    if isinstance(waiting, tuple):
        return len(waiting[1][2])
    return len(waiting.values) if isinstance(waiting, Committed) else 0


def _names_a_file(message: object) -> bool:
    """Whether a file of attempts that are no more is to be deleted."""
    return isinstance(message, TaskSaid) and isinstance(message.report, Unwanted)
