"""Which channel a record leaves through.

A selector is set up once with the number of channels and then answers one number per record. A
broadcast selector cannot answer: it says so with `is_broadcast`, and the writer asks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Protocol

import numpy as np

from refimpl.errors import LocalUsageError
from refimpl.producer.key_groups import java_hash_code, key_groups_of, murmur_hash
from refimpl.records.elements import Column, RecordBatch
from refimpl.records.types import TypeSerializer
from refimpl.records.vectorized import for_one

__all__ = [
    "BroadcastSelector",
    "ChannelSelector",
    "ForwardSelector",
    "GlobalSelector",
    "KeyGroupSelector",
    "RebalanceSelector",
    "RescaleSelector",
    "RoundRobinSelector",
    "ShuffleSelector",
    "is_constant",
    "turns_of",
]


class ChannelSelector(Protocol):
    """Picks a channel, from 0 to `num_channels` - 1, for a value.

    Flink:   ChannelSelector (runtime.io.network.api.writer), 1.11.4
    """

    name: str
    is_broadcast: bool

    def setup(self, num_channels: int) -> None: ...

    def select_channel(self, value: object) -> int: ...

    def select_channels(self, batch: RecordBatch) -> Column | int:
        """The channel of each record of a batch, in order; or the one of all."""


class _Cyclic:
    """One channel after the other, whatever the value.

    `turns` are the channels to come, without end. Who takes the next one has chosen it, so whoever has a record
    in hand may do that and need not ask.
    """

    name = "cyclic"
    is_broadcast = False
    turns: Iterator[int]

    def __init__(self) -> None:
        self.num_channels = 0

    def setup(self, num_channels: int) -> None:
        self.begin_after(-1, num_channels)

    def begin_after(self, channel: int, num_channels: int) -> None:
        """Let the channel behind this one be the first."""
        self.num_channels = num_channels
        self.turns = cycle([*range(channel + 1, num_channels), *range(channel + 1)])

    def select_channel(self, value: object) -> int:
        return next(self.turns)

    def select_channels(self, batch: RecordBatch) -> Column | int:
        whole, rest = divmod(len(batch), self.num_channels)
        around = np.fromiter(self.turns, np.int64, self.num_channels)  # all of them: that changes no turn
        return np.concatenate([np.tile(around, whole), np.fromiter(self.turns, np.int64, rest)])


class RoundRobinSelector(_Cyclic):
    """All channels in turn, from channel 0: the runtime's own default.

    Flink:   RoundRobinChannelSelector (runtime.io.network.api.writer), 1.11.4
    """

    name = "round robin"


class RescaleSelector(_Cyclic):
    """The channels to the nearby subtasks in turn, from channel 0.

    Flink:   RescalePartitioner (streaming.runtime.partitioner), 1.11.4
    """

    name = "rescale"


class RebalanceSelector(_Cyclic):
    """All channels in turn, from a random one, so that many producers do not start on the same.

    Flink:   RebalancePartitioner (streaming.runtime.partitioner), 1.11.4
    """

    name = "rebalance"

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._seed = seed

    def setup(self, num_channels: int) -> None:
        self.begin_after(int(np.random.default_rng(self._seed).integers(num_channels)), num_channels)


class ForwardSelector:
    """Always the only channel, to the subtask with the same index.

    Flink:   ForwardPartitioner (streaming.runtime.partitioner), 1.11.4
    """

    name = "forward"
    is_broadcast = False

    def setup(self, num_channels: int) -> None:
        if num_channels != 1:
            raise LocalUsageError(f"forward has one channel, not {num_channels}")

    def select_channel(self, value: object) -> int:
        return 0

    def select_channels(self, batch: RecordBatch) -> Column | int:
        return 0


class GlobalSelector:
    """Always the first channel: one subtask gets everything.

    Flink:   GlobalPartitioner (streaming.runtime.partitioner), 1.11.4
    """

    name = "global"
    is_broadcast = False

    def setup(self, num_channels: int) -> None: ...

    def select_channel(self, value: object) -> int:
        return 0

    def select_channels(self, batch: RecordBatch) -> Column | int:
        return 0


class ShuffleSelector:
    """A channel at random, each equally likely.

    Flink:   ShufflePartitioner (streaming.runtime.partitioner), 1.11.4
    """

    name = "shuffle"
    is_broadcast = False

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self._num_channels = 0
        self._drawn: list[int] = []

    def setup(self, num_channels: int) -> None:
        self._num_channels = num_channels
        self._drawn = []

    def select_channel(self, value: object) -> int:
        if not self._drawn:
            self._drawn = self._random.integers(self._num_channels, size=1024).tolist()
        return self._drawn.pop()

    def select_channels(self, batch: RecordBatch) -> Column | int:
        return np.array([self.select_channel(None) for _ in range(len(batch))])


class KeyGroupSelector:
    """The channel to the subtask that owns the key's group.

    `key_of` takes the key out of a value, and if it is vectorized all keys out of a batch. Keys seen are
    remembered, up to a limit: looking one up is much cheaper than hashing it again.

    Flink:   KeyGroupStreamPartitioner (streaming.runtime.partitioner), 1.11.4
    """

    name = "hash"
    is_broadcast = False
    _MAX_REMEMBERED = 65_536

    def __init__(
        self,
        key_of: Callable[[object], object],
        max_parallelism: int,
        key_type: TypeSerializer | None = None,
    ) -> None:
        self.key_of, self._key_of_one = key_of, for_one(key_of)
        self.max_parallelism = max_parallelism
        self.key_type = key_type
        self.num_channels = 0
        self._channels: dict[object, int] = {}

    def setup(self, num_channels: int) -> None:
        if num_channels > self.max_parallelism:
            raise LocalUsageError(
                f"{num_channels} subtasks cannot share {self.max_parallelism} key groups; raise max_parallelism"
            )
        self.num_channels = num_channels
        self._channels = {}

    def select_channel(self, value: object) -> int:
        key = self._key_of_one(value)
        # 1, 1.0 and True are one dict key in Python and three keys in Java, and so are 0.0 and -0.0;
        # text and whole numbers are what can be remembered, each kind by itself.
        kind = type(key)
        if kind is not int and kind is not str:
            return self.channel_of_key(key)
        try:
            return self._channels[key]
        except KeyError:
            channel = self.channel_of_key(key)
        if len(self._channels) < self._MAX_REMEMBERED:
            self._channels[key] = channel
        return channel

    def select_channels(self, batch: RecordBatch) -> Column | int:
        many = getattr(self.key_of, "many", None)
        groups = None if many is None else key_groups_of(many(batch), self.max_parallelism, self.key_type)
        if groups is None:
            return np.fromiter(map(self.select_channel, batch.values()), np.int64, len(batch))
        return groups * self.num_channels // self.max_parallelism

    def channel_of_key(self, key: object) -> int:
        """The channel to the subtask that owns this key's group.

        A hash of the key's hash code picks one of `max_parallelism` key groups, for good. Each channel owns a range of
        neighbouring groups, all as equal as can be: of 128 groups 5 channels own 26, 26, 25, 26 and 25, and channel n
        begins with group 128 n / 5, rounded up.

        Flink:   KeyGroupRangeAssignment.assignKeyToParallelOperator (runtime.state), 1.11.4
        """
        # `key_group_of` and `operator_index_of` of key_groups.py in one place: lesson 5 asks for the whole way.
        key_group = murmur_hash(java_hash_code(key, self.key_type)) % self.max_parallelism
        return key_group * self.num_channels // self.max_parallelism


class BroadcastSelector:
    """Every record to every channel.

    Flink:   BroadcastPartitioner (streaming.runtime.partitioner), 1.11.4
    """

    name = "broadcast"
    is_broadcast = True

    def setup(self, num_channels: int) -> None: ...

    def select_channel(self, value: object) -> int:
        raise LocalUsageError("a broadcast goes to all channels; there is no one to select")

    def select_channels(self, batch: RecordBatch) -> Column | int:
        raise LocalUsageError("a broadcast goes to all channels; there is none to select")


def is_constant(selector: ChannelSelector, num_channels: int) -> bool:
    """Whether `selector` answers 0 whatever the value, so that nobody need ask it for each record."""
    if isinstance(selector, ForwardSelector | GlobalSelector):
        return True
    return num_channels == 1 and isinstance(selector, _Cyclic | ShuffleSelector)


def turns_of(selector: ChannelSelector) -> Iterator[int] | None:
    """The channels to come, if taking turns is all that `selector` does; `None` if it must be asked."""
    if isinstance(selector, _Cyclic) and type(selector).select_channel is _Cyclic.select_channel:
        return selector.turns
    return None
