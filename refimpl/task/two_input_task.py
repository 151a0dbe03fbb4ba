"""A task that reads two inputs: each record goes to the head's method for the input it came from."""

from __future__ import annotations

from refimpl.consumer.network_input import EndOfInput, InputElement
from refimpl.consumer.two_inputs import TwoInputs
from refimpl.records.elements import StreamRecord
from refimpl.task.task import Task

__all__ = ["TwoInputTask"]


class TwoInputTask(Task):
    """A task whose head has two inputs. All else is as with one: the step, the cut, what is idle and what is done.

    Flink:   TwoInputStreamTask (streaming.runtime.tasks), 1.11.4
    """

    input: TwoInputs

    def _hand_on(self, element: InputElement) -> None:
        match element:
            case StreamRecord():
                self.chain.process_from(self.input.side, element)
            case EndOfInput(side):
                self.chain.end_input(side)
            case _:
                super()._hand_on(element)
