"""Which channel a record leaves through.

A selector is set up once with the number of channels and then answers one number per record. A
broadcast selector cannot answer: it says so with `is_broadcast`, and the writer asks nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Protocol

from refimpl.errors import LocalUsageError
from refimpl.producer.key_groups import java_hash_code, murmur_hash
from refimpl.records.types import TypeSerializer

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
]


class ChannelSelector(Protocol):
    """Picks a channel, from 0 to `num_channels` - 1, for a value.

    Flink:   ChannelSelector (runtime.io.network.api.writer), 1.11.4
    """

    name: str
    is_broadcast: bool

    def setup(self, num_channels: int) -> None: ...

    def select_channel(self, value: object) -> int: ...


class _Cyclic:
    """One channel after the other, whatever the value. `turns` are the channels to come, without end."""

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
        self.begin_after(random.Random(self._seed).randrange(num_channels), num_channels)


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


class GlobalSelector:
    """Always the first channel: one subtask gets everything.

    Flink:   GlobalPartitioner (streaming.runtime.partitioner), 1.11.4
    """

    name = "global"
    is_broadcast = False

    def setup(self, num_channels: int) -> None: ...

    def select_channel(self, value: object) -> int:
        return 0


class ShuffleSelector:
    """A channel at random, each equally likely.

    Flink:   ShufflePartitioner (streaming.runtime.partitioner), 1.11.4
    """

    name = "shuffle"
    is_broadcast = False

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.num_channels = 0

    def setup(self, num_channels: int) -> None:
        self.num_channels = num_channels

    def select_channel(self, value: object) -> int:
        return int(self.random.random() * self.num_channels)


class KeyGroupSelector:
    """The channel to the subtask that owns the key's group.

    `key_of` takes the key out of a value.

    Flink:   KeyGroupStreamPartitioner (streaming.runtime.partitioner), 1.11.4
    """

    name = "hash"
    is_broadcast = False

    def __init__(
        self,
        key_of: Callable[[object], object],
        max_parallelism: int,
        key_type: TypeSerializer | None = None,
    ) -> None:
        self.key_of = key_of
        self.max_parallelism = max_parallelism
        self.key_type = key_type
        self.num_channels = 0

    def setup(self, num_channels: int) -> None:
        if num_channels > self.max_parallelism:
            raise LocalUsageError(
                f"{num_channels} subtasks cannot share {self.max_parallelism} key groups; raise max_parallelism"
            )
        self.num_channels = num_channels

    def select_channel(self, value: object) -> int:
        return self.channel_of_key(self.key_of(value))

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
