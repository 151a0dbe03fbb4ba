"""A task whose records come many at a time."""

from __future__ import annotations

from refimpl.shortcuts.chain import FastChain
from refimpl.shortcuts.input import FastNetworkInput, FastSourceInput, FastTwoInputs
from refimpl.shortcuts.tables import write_table_at_once
from refimpl.task.checkpoints import SubtaskCheckpoints
from refimpl.task.snapshot import Progress
from refimpl.task.task import Task
from refimpl.task.two_input_task import TwoInputTask

__all__ = ["FastSubtaskCheckpoints", "FastTask", "FastTwoInputTask"]

_SEVERAL = 4
"""Buffers that are much for one step: a quarter of the 16 that a thread may take (`BUFFERS_PER_STEP`)."""


class FastSubtaskCheckpoints(SubtaskCheckpoints):
    """Makes bytes of a table by its columns.

    Stands for `SubtaskCheckpoints._write_table`.
    """

    _write_table = staticmethod(write_table_at_once)


class FastTask(Task):
    """Takes runs and batches from its input, and goes from step to step without the driver where it may.

    Stands for `Task.process`, and for `Task.emit` and `Task.poll` between two steps of a source.
    """

    chain: FastChain
    input: FastNetworkInput | FastSourceInput
    make_checkpoints = FastSubtaskCheckpoints

    @property
    def moves_much(self) -> bool:
        """Whether buffers come, or leave, several at a time: it pays to wait for more of them."""
        return self.input.num_taken >= _SEVERAL or not all(writer.is_available for writer in self.writers)

    def process(self) -> None:
        self._notes.note(Progress.MADE)
        if not self._do_what_is_due():
            return
        source = self.input
        source.takes_batches = self.chain.takes_batches
        while True:
            self._hand_on_many()
            if self._is_blocked:
                return
            if (element := source.next_other()) is not None:
                self._hand_on(element)
                if self._is_blocked:
                    return
            elif source.is_drained:
                break
        self._finish_chain()

    def _hand_on_many(self) -> None:
        """Hand on the batch or the records that come next, maybe none, or until a writer waits for a buffer."""
        source, chain = self.input, self.chain
        if source.takes_batches and (batch := source.next_batch()) is not None:
            chain.process_batch(batch)
        elif chain.takes_values:
            chain.process_values(source.next_values(), self.writers)
        else:
            chain.process_records(source.next_records(), self.writers)

    def go_on(self) -> bool:
        """Begin another step where the last one was processed, without exclusion; false if it must be as usual.

        A source does so while it has room: it holds no buffers to give back, and what it reads is its own.
        """
        if not self.input.is_flowing or self._mail or any(not writer.is_available for writer in self.writers):
            return False
        self._say(Progress.MADE)
        self.num_steps += 1
        self.is_work = True
        return self.input.take() > 0


class FastTwoInputTask(FastTask, TwoInputTask):
    """Takes runs of one input, then of the other."""

    input: FastTwoInputs

    def _hand_on_many(self) -> None:
        values = self.input.next_values()  # finding them says of which input they are
        self.chain.process_values_from(self.input.side, values, self.writers)
