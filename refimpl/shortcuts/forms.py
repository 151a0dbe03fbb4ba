"""What an operator does with a batch, and what one of the user's own may say of it.

A form stands beside an operator and does to a batch what `process` does to each of its records. Whoever writes an
operator may give it forms of its own. They are called with shortcuts only, and must do what `process` does:

    process_batch(batch)              treats a `RecordBatch`; `self.output.collect_batch` sends one on. A property
                                      `takes_batches` may say that a batch is to come record by record for now.
    process_value(value, timestamp)   treats a value, at the head of a chain.

Both belong to the class that has `process`: a subclass with another `process` has other forms too, or none.
"""

from __future__ import annotations

from typing import Protocol

from refimpl.errors import SluiceError
from refimpl.records.elements import RecordBatch
from refimpl.task.operators import Operator
from refimpl.task.outputs import Output, process

__all__ = ["BatchForm", "BatchOutput"]


class BatchOutput(Output, Protocol):
    """What an operator may do with results where shortcuts are taken."""

    def collect_batch(self, batch: RecordBatch) -> None:
        """Send the records of a batch down the main output."""


class BatchForm:
    """What `process` of an operator does, for the records of a batch: here one by one, in other forms at once."""

    def __init__(self, operator: Operator, output: BatchOutput) -> None:
        self.operator = operator
        self.output = output

    @property
    def takes_batches(self) -> bool:
        """Whether a batch stays one here now; else it comes record by record."""
        return False

    def process_batch(self, batch: RecordBatch) -> None:
        self.process_each(batch)

    def process_each(self, batch: RecordBatch) -> None:
        """Treat the records of a batch one by one."""
        for record in batch.records():
            process(self.operator, record)

    def refused(self, batch: RecordBatch, error: BaseException) -> SluiceError:
        """What to raise for a batch that failed if none of its records fails alone.

        Raises:
            UserCodeError: a record does; it is named, as it is by `process`.
        """
        self.process_each(batch)
        return self.operator.fail(batch, error)
