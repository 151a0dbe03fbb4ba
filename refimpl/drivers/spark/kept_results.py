"""Results that outlive a try of the stage: Spark drops the rows of one that failed, so checkpoints have them too.

What a sink has got since its last file is part of its state. When that is much, it is put into a file of the store, and
the state only says how many files there are. A try that goes on from a checkpoint makes rows of all of that again.
Files that no checkpoint came to name belong to nothing, and go when the job has finished. The values are pickled, and
the state says so: of another run's checkpoint they are read with `trust_pickle` only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from refimpl.drivers.processes.messages import pack, unpack
from refimpl.drivers.processes.worker import Delivery, Outlet
from refimpl.errors import StoreError
from refimpl.state.keyed_state import KeyedStateBackend
from refimpl.state.layout import JobStore, plain_name
from refimpl.state.state_types import PICKLE
from refimpl.state.subtask_state import OperatorStates
from refimpl.task.operators import OperatorContext
from refimpl.task.outputs import Output

__all__ = ["RESULTS_FOLDER", "KeptDelivery", "KeptResults"]

RESULTS_FOLDER = "results/"
"""What the keys of all results of a job begin with."""

_MOST_IN_STATE = 1 << 20  # bytes of values, and one value more


class KeptDelivery(Delivery):
    """Sends the values of a sink on as `Delivery` does, and keeps them for another try.

    Flink:   GenericWriteAheadSink (streaming.runtime.operators), 1.11.4, plays this part
    Differs: the values are given out at once; it is Spark that forgets them if the try fails.
    """

    states: OperatorStates

    def __init__(self, sender: Outlet, node_id: int, store: JobStore) -> None:
        super().__init__(sender, node_id)
        self.states = OperatorStates(KeyedStateBackend(), {})
        self._store = store
        self._held: list[bytes] = []
        self._num_bytes = 0
        self._put_at = _MOST_IN_STATE
        self._num_files = 0

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._in_files = self.states.by_no_key.list_state("result-files", PICKLE)
        self._in_state = self.states.by_no_key.list_state("results", PICKLE)
        self._folder = f"{RESULTS_FOLDER}{plain_name(context.uid)}-{context.subtask}-{context.attempt}/"

    def go_on(self) -> tuple[list[str], list[bytes]]:
        """What the checkpoint has: keys of files, and values behind these. Once, before there is more."""
        files = [f"{folder}{number}" for folder, count in self._in_files.get() for number in range(count)]
        self._held = [*self._in_state.get()]
        self._num_bytes = sum(map(len, self._held))
        return files, [*self._held]

    def deliver(self, value: bytes) -> None:
        super().deliver(value)
        self._held.append(value)
        self._num_bytes += len(value)
        if self._num_bytes >= self._put_at:
            self._put()

    def prepare_barrier(self, checkpoint_id: int) -> None:
        self._remember()

    def finish(self) -> None:
        super().finish()
        self._remember()

    def _put(self) -> None:
        """Move what is held into a file; if that fails it stays where it is until there is more."""
        self._put_at = self._num_bytes + _MOST_IN_STATE
        with suppress(StoreError):
            self._store.put(f"{self._folder}{self._num_files}", [pack(self._held)], replace=True)
            self._num_files += 1
            self._held, self._num_bytes, self._put_at = [], 0, _MOST_IN_STATE

    def _remember(self) -> None:
        others = [each for each in self._in_files.get() if each[0] != self._folder]
        own = [(self._folder, self._num_files)] if self._num_files else []
        self._in_files.update([*others, *own])
        self._in_state.update(self._held)


class KeptResults:
    """The sinks of one TaskManager that keep their values, those of all its subtasks."""

    def __init__(self, sender: Outlet, store: JobStore) -> None:
        self._sender = sender
        self._store = store
        self._made: list[tuple[int, KeptDelivery]] = []
        self._before: list[tuple[int, int, list[str], list[bytes]]] = []

    def make(self, node_id: int) -> KeptDelivery:
        """The operator of one more subtask."""
        made = KeptDelivery(self._sender, node_id, self._store)
        self._made.append((node_id, made))
        return made

    def go_on(self) -> None:
        """Hear what the checkpoint has of all of them; before the tasks run."""
        self._before = [(node_id, each.context.subtask, *each.go_on()) for node_id, each in self._made]

    def restored(self) -> Iterator[tuple[int, list[tuple[int, bytes]]]]:
        """That, once: operator, and values with their subtask, in order for each; of one file at a time.

        Raises:
            StoreError: a file is not there, or the store did not answer.
        """
        before, self._before = self._before, []
        for node_id, subtask, files, held in before:
            for values in (*(unpack(self._store.get(key)) for key in files), held):
                if values:
                    yield node_id, [(subtask, value) for value in values]
