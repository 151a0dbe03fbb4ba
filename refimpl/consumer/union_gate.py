"""Several gates of one task, read as one, and a fair turn for each that has something."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate

from refimpl.consumer.channel import BufferOrEvent, InputChannel
from refimpl.consumer.input_gate import InputGate

__all__ = ["UnionInputGate"]


class UnionInputGate:
    """The gates of a task that reads several exchanges: each time one buffer of the next gate that has any.

    So each exchange has the same turn, however many channels it has. `channels` are those of the first gate, then
    those of the second, and so on; a channel's number here is its place in them. A gate may be a union itself:
    its exchanges share one turn.

    Flink:   UnionInputGate (runtime.io.network.partition.consumer), 1.11.4
    """

    def __init__(
        self, name: str, gates: Sequence[InputGate | UnionInputGate], on_ready: Callable[[], None] | None = None
    ) -> None:
        self.name = name
        self.gates = gates
        self.channels: list[InputChannel] = [channel for gate in gates for channel in gate.channels]
        self.on_ready = on_ready
        self._first_channels = list(accumulate((len(gate.channels) for gate in gates), initial=0))
        self._line: deque[int] = deque()

    def __repr__(self) -> str:
        return f"UnionInputGate({self.name}, {len(self._line)} of {len(self.gates)} gates ready)"

    def open(self) -> None:
        """Start reading all channels of all gates."""
        for number, gate in enumerate(self.gates):
            gate.on_ready = lambda number=number: self._enter_line(number)
            gate.open()

    @property
    def is_ready(self) -> bool:
        """Whether a poll is worth while."""
        return bool(self._line)

    @property
    def is_finished(self) -> bool:
        """Whether every channel of every gate has ended."""
        return all(gate.is_finished for gate in self.gates)

    def poll_next(self) -> BufferOrEvent | None:
        """One buffer or event of the gate whose turn it is, or `None` if no gate has any."""
        while self._line:
            number = self._line.popleft()
            taken = self.gates[number].poll_next()
            if self.gates[number].is_ready:
                self._enter_line(number)
            if taken is not None:
                index = self._first_channels[number] + taken.channel_index
                return taken._replace(channel_index=index, is_more_available=bool(self._line))
        return None

    def release(self) -> None:
        """Stop reading all channels of all gates."""
        for gate in self.gates:
            gate.release()
        self._line.clear()

    def _enter_line(self, number: int) -> None:
        if number in self._line:
            return
        self._line.append(number)
        if len(self._line) == 1 and self.on_ready is not None:
            self.on_ready()
