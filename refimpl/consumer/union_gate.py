"""Several gates of one task, read as one, and a fair turn for each that has something."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate

from refimpl.consumer.channel import BufferOrEvent, InputChannel
from refimpl.consumer.input_gate import InputGate
from refimpl.records.events import EndOfChannelState, Event

__all__ = ["UnionInputGate"]


class UnionInputGate:
    """The gates of a task that reads several exchanges: each time one buffer of the next gate that has any.

    So each exchange has the same turn, however many channels it has. `channels` are those of the first gate, then
    those of the second, and so on; a channel's number here is its place in them. A gate may be a union itself:
    its exchanges share one turn. With `tells_of_each` `on_ready` is called for each gate that gets something, and
    not for the first alone.

    Flink:   UnionInputGate (runtime.io.network.partition.consumer), 1.11.4
    """

    def __init__(
        self, name: str, gates: Sequence[InputGate | UnionInputGate], on_ready: Callable[[], None] | None = None
    ) -> None:
        self.name = name
        self.gates = gates
        self.channels: list[InputChannel] = [channel for gate in gates for channel in gate.channels]
        self.on_ready = on_ready
        self.tells_of_each = False
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
                if isinstance(taken.event, EndOfChannelState):
                    self.channels[index] = self.gates[number].channels[taken.channel_index]
                return taken._replace(channel_index=index, is_more_available=bool(self._line))
        return None

    def poll_priority(self, index: int) -> Event | None:
        """The event that has overtaken what waits in a channel, or `None` if there is none now."""
        number = self._gate_of(index)
        return self.gates[number].poll_priority(index - self._first_channels[number])

    def recover(self, index: int, data: bytes) -> None:
        """Let a channel begin with what a checkpoint has of it, before it reads anything; ask before `open`."""
        number = self._gate_of(index)
        self.gates[number].recover(index - self._first_channels[number], data)
        self.channels[index] = self.gates[number].channels[index - self._first_channels[number]]

    def release(self) -> None:
        """Stop reading all channels of all gates."""
        for gate in self.gates:
            gate.release()
        self._line.clear()

    def _gate_of(self, index: int) -> int:
        return bisect_right(self._first_channels, index) - 1

    def _enter_line(self, number: int) -> None:
        if number in self._line:
            return
        self._line.append(number)
        if self.on_ready is not None and (len(self._line) == 1 or self.tells_of_each):
            self.on_ready()
