"""The channels of many values at once, and of one value with less work: what the selectors of the book would answer.

A selector of any other class, such as a learner's, is asked for each value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeGuard

import numpy as np

from refimpl.producer.selector import (
    ChannelSelector,
    ForwardSelector,
    GlobalSelector,
    KeyGroupSelector,
    RebalanceSelector,
    RescaleSelector,
    RoundRobinSelector,
    ShuffleSelector,
)
from refimpl.records.elements import Column, RecordBatch
from refimpl.records.types import INT, TypeSerializer
from refimpl.records.vectorized import for_one

__all__ = ["MAX_REMEMBERED", "Select", "channels_of_batch", "is_constant", "key_groups_of", "select_of", "takes_turns"]

Select: TypeAlias = Callable[[object], int]
"""Answers the channel of a value."""

MAX_REMEMBERED = 65_536
"""Keys whose channel a writer remembers: 2^16, so that the memory for them stays below about 10 MB."""

_IN_TURN = (RoundRobinSelector, RescaleSelector, RebalanceSelector)


def is_constant(selector: ChannelSelector, num_channels: int) -> bool:
    """Whether `selector` answers 0 whatever the value, or, for a broadcast, is not asked."""
    if type(selector) in (ForwardSelector, GlobalSelector) or selector.is_broadcast:
        return True
    return num_channels == 1 and (takes_turns(selector) or type(selector) is ShuffleSelector)


def takes_turns(selector: ChannelSelector) -> TypeGuard[RoundRobinSelector | RescaleSelector | RebalanceSelector]:
    """Whether taking the next of its `turns` is all that `selector` does, so that it need not be asked."""
    return isinstance(selector, _IN_TURN) and type(selector).select_channel is RoundRobinSelector.select_channel


def select_of(selector: ChannelSelector) -> Select:
    """What answers as `selector.select_channel` does. Keys seen are remembered: a look-up is cheaper than a hash."""
    if isinstance(selector, ShuffleSelector) and type(selector) is ShuffleSelector:
        return _drawn_ahead(selector)
    if not isinstance(selector, KeyGroupSelector) or type(selector) is not KeyGroupSelector:
        return selector.select_channel
    key_of, channel_of_key, channels = for_one(selector.key_of), selector.channel_of_key, dict[object, int]()

    def select(value: object) -> int:
        key = key_of(value)
        # 1, 1.0 and True are one dict key in Python and three keys in Java, and so are 0.0 and -0.0;
        # text and whole numbers are what can be remembered, each kind by itself.
        kind = type(key)
        if kind is not int and kind is not str:
            return channel_of_key(key)
        try:
            return channels[key]
        except KeyError:
            channel = channel_of_key(key)
        if len(channels) < MAX_REMEMBERED:
            channels[key] = channel
        return channel

    return select


def _drawn_ahead(selector: ShuffleSelector) -> Select:
    """What draws 1024 numbers at once: those that `selector.random` would draw, with the same generator in numpy."""
    twin, (_, state, _), drawn = np.random.RandomState(), selector.random.getstate(), list[int]()
    twin.set_state(("MT19937", np.array(state[:-1], np.uint32), state[-1], 0, 0.0))

    def select(value: object) -> int:
        if not drawn:
            drawn.extend((twin.random_sample(1024)[::-1] * selector.num_channels).astype(int).tolist())
        return drawn.pop()

    return select


def _next_of(turns: Iterator[int], num_channels: int, count: int) -> Column:
    whole, rest = divmod(count, num_channels)
    around = np.fromiter(turns, np.int64, num_channels)  # all of them: that changes no turn
    return np.concatenate([np.tile(around, whole), np.fromiter(turns, np.int64, rest)])


def channels_of_batch(selector: ChannelSelector, select: Select, batch: RecordBatch) -> Column | int:
    """The channel of each record of a batch, in order, or the one of all. `select` is asked where there is no rule."""
    if is_constant(selector, 0):
        return 0
    if takes_turns(selector):
        return _next_of(selector.turns, selector.num_channels, len(batch))
    if isinstance(selector, KeyGroupSelector) and type(selector) is KeyGroupSelector:
        many = getattr(selector.key_of, "many", None)
        groups = None if many is None else key_groups_of(many(batch), selector.max_parallelism, selector.key_type)
        if groups is not None:
            return groups * selector.num_channels // selector.max_parallelism
    return np.fromiter(map(select, batch.values()), np.int64, len(batch))


# -- key groups of a column ------------------------------------------------------------------------


def key_groups_of(keys: Column, max_parallelism: int, key_type: TypeSerializer | None = None) -> Column | None:
    """`key_group_of` of many keys at once; `None` if there is no rule for a column of this kind."""
    codes = _java_hash_codes(keys, key_type)
    if codes is None:
        return None
    hashes = _murmur_hashes(codes)
    groups: Column = hashes - hashes // max_parallelism * max_parallelism  # numpy's `%` takes three times as long
    return groups


def _java_hash_codes(keys: Column, key_type: TypeSerializer | None) -> Column | None:
    """`java_hash_code` of each key, as 32 bits without a sign."""
    if isinstance(keys, np.ma.MaskedArray) and not np.ma.is_masked(keys):
        keys = keys.data
    match keys.dtype.kind:
        case _ if isinstance(keys, np.ma.MaskedArray):
            return None
        case "b":
            return np.where(keys, np.uint32(1231), np.uint32(1237))
        case "i" | "u" if key_type is INT:
            return keys.astype(np.uint32)
        case "i" | "u":
            bits = keys.astype(np.uint64)
        case "f":
            numbers = keys.astype(np.float64)
            bits = np.where(np.isnan(numbers), np.uint64(0x7FF8 << 48), numbers.view(np.uint64))
        case "U":
            return _polynomials(keys)
        case _:
            return None
    return (bits ^ bits >> np.uint64(32)).astype(np.uint32)


def _polynomials(texts: Column) -> Column | None:
    """`String.hashCode` of each text; `None` if one has characters of two UTF-16 units."""
    units = np.ascontiguousarray(texts).view(np.uint32).reshape(len(texts), -1)
    if (units > 0xFFFF).any():
        return None
    lengths = np.strings.str_len(texts)
    codes = np.zeros(len(texts), np.uint32)
    for place in range(units.shape[1]):
        codes = np.where(place < lengths, codes * np.uint32(31) + units[:, place], codes)
    return codes


def _murmur_hashes(codes: Column) -> Column:
    """`murmur_hash` of each code: the same steps, on a column of 32 bits, which wrap around by themselves."""
    mixed: Column = codes * np.uint32(0xCC9E2D51)
    mixed = (mixed << 15 | mixed >> 17) * np.uint32(0x1B873593)
    mixed = (mixed << 13 | mixed >> 19) * np.uint32(5) + np.uint32(0xE6546B64)
    mixed ^= np.uint32(4)
    mixed ^= mixed >> 16
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> 13
    mixed *= np.uint32(0xC2B2AE35)
    mixed ^= mixed >> 16
    # The one number without a positive counterpart stays what it is, and becomes 0 with its sign bit.
    positive: Column = np.abs(mixed.view(np.int32)).view(np.uint32) & np.uint32(0x7FFFFFFF)
    return positive
