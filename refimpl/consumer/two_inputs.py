"""Two inputs of one task, read in turn: their elements come one after the other, and each says which it is of.

What barriers cut is the whole task. So one handler decides for the channels of both inputs, and nothing behind a cut is
taken from either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from refimpl.config import CheckpointingMode
from refimpl.consumer.network_input import EndOfInput, NetworkInput
from refimpl.consumer.two_input_valve import TwoInputValve
from refimpl.consumer.union_gate import UnionInputGate
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.records.events import EndOfPartition
from refimpl.records.spanning import RecordDeserializer

__all__ = ["FIRST", "SECOND", "TwoInputs"]

FIRST, SECOND = 0, 1
"""The two inputs of a task, as they are numbered everywhere. Differs: Flink's methods count 1 and 2."""


class TwoInputs(NetworkInput):
    """The two inputs of a task: `gate` unites a gate for each, and `element_serializers` has what each is written with.

    `side` is the input of the element that was handed out last. An `EndOfInput` is handed out behind the last element
    of each.

    Flink:   StreamTwoInputProcessor (streaming.runtime.io), 1.11.4
    Differs: an input's turn is one buffer, as in a union of gates; in Flink it is one record.
    """

    def __init__(
        self,
        gate: UnionInputGate,
        element_serializers: Sequence[StreamElementSerializer],
        make_deserializer: Callable[[], RecordDeserializer],
        mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE,
    ) -> None:
        super().__init__(gate, element_serializers[FIRST], make_deserializer, mode)
        first, second = gate.gates
        self.side = FIRST
        self.valve = TwoInputValve([len(first.channels), len(second.channels)], element_serializers[FIRST].version)
        self._element_serializers = element_serializers
        self._side_of = [FIRST] * len(first.channels) + [SECOND] * len(second.channels)
        self._num_open = [len(first.channels), len(second.channels)]

    def _next_buffer(self) -> bool:
        if not self._taken:
            return False
        channel, item = self._taken[0]
        is_open = self._deserializers[channel] is not None
        self._turn_to(self._side_of[channel])
        super()._next_buffer()
        if isinstance(item, EndOfPartition) and is_open:
            self._num_open[self.side] -= 1
            if not self._num_open[self.side]:
                self._decoded.append(EndOfInput(self.side))
        return True

    def _turn_to(self, side: int) -> None:
        """Read one input, until the next buffer: what was read before has been handed out."""
        self.side = side
        self._elements = self._element_serializers[side]
