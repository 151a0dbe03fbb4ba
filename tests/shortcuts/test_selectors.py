"""The channels of many values at once, and of values whose keys are remembered: what the book's selectors say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.producer import (
    BroadcastSelector,
    ChannelSelector,
    ForwardSelector,
    GlobalSelector,
    KeyGroupSelector,
    RebalanceSelector,
    RescaleSelector,
    RoundRobinSelector,
    ShuffleSelector,
    key_group_of,
    operator_index_of,
)
from refimpl.records import INT, LONG, STRING, Field, RecordBatch, Vectorized
from refimpl.shortcuts import selectors
from refimpl.shortcuts.selectors import channels_of_batch, is_constant, key_groups_of, select_of, takes_turns


def chosen(selector: ChannelSelector, values: object) -> list[int]:
    return [*map(select_of(selector), values)]


SELECTORS = {
    "round robin": RoundRobinSelector, "rescale": RescaleSelector, "rebalance": lambda: RebalanceSelector(7),
    "shuffle": lambda: ShuffleSelector(7), "global": GlobalSelector, "key": lambda: KeyGroupSelector(Field(0), 128),
    "plain key": lambda: KeyGroupSelector(lambda value: value[0], 128),
}  # fmt: skip


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("channels", [1, 5])
def test_what_answers_for_a_selector_answers_as_it_does(name: str, channels: int) -> None:
    """Value by value, in batches, and in turns of both; a draw is ahead of the selector's own, in the same sequence."""
    ours, theirs = SELECTORS[name](), SELECTORS[name]()
    for selector in (ours, theirs):
        selector.setup(channels)
    values = [(number * 31, number) for number in range(3_000)]
    wanted = [theirs.select_channel(value) for value in values]
    select, found = select_of(ours), []
    for start in range(0, 3_000, 300):
        found += map(select, values[start : start + 7])
        rest = values[start + 7 : start + 300]
        batch = RecordBatch([np.array(column) for column in zip(*rest, strict=True)])
        channels_of = channels_of_batch(ours, select, batch)
        found += [channels_of] * len(rest) if isinstance(channels_of, int) else channels_of.tolist()
    assert found == wanted


def test_only_selectors_of_the_book_are_not_asked() -> None:
    class Own(RoundRobinSelector):
        def select_channel(self, value: object) -> int:
            return 1

    class OwnKeys(KeyGroupSelector):
        def channel_of_key(self, key: object) -> int:
            return 1

    assert takes_turns(RoundRobinSelector())
    assert not takes_turns(Own())
    constant = [ForwardSelector, GlobalSelector, BroadcastSelector]
    assert all(is_constant(make(), 2) for make in constant)
    assert not is_constant(ShuffleSelector(), 2)
    assert is_constant(RoundRobinSelector(), 1)
    assert not is_constant(Own(), 1)
    own = OwnKeys(Field(0), 128)
    own.setup(2)
    assert channels_of_batch(own, select_of(own), RecordBatch([np.arange(3)])).tolist() == [1, 1, 1]


def identity(value: object) -> object:
    return value


def test_whoever_takes_the_next_turn_has_chosen_it() -> None:
    selector = RoundRobinSelector()
    selector.setup(3)
    batch = RecordBatch([np.zeros(4)])
    assert (selector.select_channel("a"), next(selector.turns), selector.select_channel("b")) == (0, 1, 2)
    select = select_of(selector)
    assert channels_of_batch(selector, select, batch).tolist() == [0, 1, 2, 0]
    assert (next(selector.turns), channels_of_batch(selector, select, batch).tolist()) == (1, [2, 0, 1, 2])


def test_keys_that_are_equal_in_python_and_not_in_java_are_kept_apart() -> None:
    selector = KeyGroupSelector(identity, 128)
    selector.setup(128)
    expected = [key_group_of(key, 128) for key in (1, 1.0, True)]
    assert len(set(expected)) == 3
    assert chosen(selector, [1, 1.0, True]) == expected
    assert chosen(selector, [True, 1.0, 1]) == expected[::-1]
    assert chosen(selector, [(1,), (1.0,), (True,)]) == [key_group_of((key,), 128) for key in (1, 1.0, True)]


def test_another_number_of_channels_forgets_where_keys_went() -> None:
    selector = KeyGroupSelector(identity, 128)
    selector.setup(64)
    keys = [f"key-{number}" for number in range(50)]
    chosen(selector, keys)
    selector.setup(2)
    assert chosen(selector, keys) == [operator_index_of(key_group_of(key, 128), 128, 2) for key in keys]


def test_more_keys_than_can_be_remembered_still_find_their_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "MAX_REMEMBERED", 3)
    selector = KeyGroupSelector(identity, 128)
    selector.setup(16)
    selector_of = selector.channel_of_key
    expected = [operator_index_of(key_group_of(key, 128), 128, 16) for key in range(10)]
    hashed = []
    monkeypatch.setattr(selector, "channel_of_key", lambda key: hashed.append(key) or selector_of(key))
    select = select_of(selector)
    assert [*map(select, range(10)), *map(select, range(10))] == 2 * expected
    assert hashed == [*range(10), *range(3, 10)]


def test_minus_zero_has_one_channel_whatever_came_before() -> None:
    found = []
    for order in ((0.0, -0.0), (-0.0, 0.0)):
        selector = KeyGroupSelector(lambda value: value, 128)
        selector.setup(16)
        found.append(
            {math.copysign(1, value): channel for value, channel in zip(order, chosen(selector, order), strict=True)}
        )
    assert found[0] == found[1]
    assert found[0][1.0] != found[0][-1.0]


KEYS = {
    "long": (st.integers(-(2**63), 2**63 - 1), np.int64, None),
    "int": (st.integers(-(2**31), 2**31 - 1), np.int32, INT),
    "small": (st.integers(-(2**31), 2**31 - 1), np.int32, LONG), "boolean": (st.booleans(), bool, None),
    "double": (st.floats() | st.just(-0.0), np.float64, None),
    "string": (st.text("aZ\0é€\ud83d", max_size=9).filter(lambda text: not text.endswith("\0")), np.str_, STRING),
}  # fmt: skip


@pytest.mark.parametrize("kind", KEYS)
@given(data=st.data(), groups=st.integers(1, 2**15))
def test_the_groups_of_many_keys_are_those_of_each(kind: str, data: st.DataObject, groups: int) -> None:
    values, dtype, key_type = KEYS[kind]
    keys = data.draw(st.lists(values, min_size=1, max_size=20))
    found = key_groups_of(np.array(keys, dtype), groups, key_type)
    assert found.tolist() == [key_group_of(key, groups, key_type) for key in keys]


def test_the_group_of_the_least_hash_is_0_also_among_many() -> None:
    """Math.abs of the least int is itself; Flink says 0. The codes are `undo_murmur` of 2^31 and of the next."""
    codes = np.array([0x836F0755, 0x6C269A67], np.uint32)
    assert key_groups_of(codes, 2**15, INT).tolist() == [0, (2**31 - 1) % 2**15]


@pytest.mark.parametrize(
    "keys",
    [np.array(["😀"]), np.array([None], object), np.ma.array([1, 2], mask=[True, False]), np.array([b"a"])],
    ids=repr,
)
def test_columns_without_a_rule_are_left_to_single_keys(keys: np.ndarray) -> None:
    assert key_groups_of(keys, 128) is None


class InParts(Vectorized):
    """Whoever calls it for each value pays for two calls."""

    def __call__(self, value: Any) -> Any:
        raise AssertionError("called, where `one` would do")


def test_whoever_selects_a_channel_calls_nothing_around_the_key_function() -> None:
    second = Field(1)
    parts, plain = KeyGroupSelector(InParts(second.one, second.many), 128), KeyGroupSelector(second.one, 128)
    for selector in (parts, plain):
        selector.setup(7)
    values = [(0, key) for key in (1, 2, "b", 3.5, 1, True)]
    assert chosen(parts, values) == [plain.select_channel(value) for value in values]
