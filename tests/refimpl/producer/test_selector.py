"""Selectors: which channel each value leaves through."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import pytest

from refimpl.errors import LocalUsageError
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
from refimpl.records import INT


def chosen(selector: ChannelSelector, values: object) -> list[int]:
    return [selector.select_channel(value) for value in values]


def identity(value: object) -> object:
    return value


@pytest.mark.parametrize("make", [RoundRobinSelector, RescaleSelector])
def test_round_robin_and_rescale_take_turns_from_channel_0(make: Callable[[], ChannelSelector]) -> None:
    """As of 1.8.

    Flink: `RescalePartitionerTest#testSelectChannelsInterval` (P49).
    """
    selector = make()
    selector.setup(3)
    assert chosen(selector, "aaaaaaa") == [0, 1, 2, 0, 1, 2, 0]


def test_rebalance_takes_turns_from_a_channel_its_seed_draws() -> None:
    """Not every producer starts on the same channel.

    Flink: `RebalancePartitionerTest#testSelectChannelsInterval` (P49).
    """
    firsts = set()
    for seed in range(20):
        selector = RebalanceSelector(seed)
        selector.setup(4)
        first, *others = chosen(selector, range(8))
        assert others == [(first + step) % 4 for step in range(1, 8)], f"seed {seed}"
        firsts.add(first)
    assert firsts == {0, 1, 2, 3}


@pytest.mark.parametrize(
    "make", [RoundRobinSelector, RescaleSelector, lambda: RebalanceSelector(5)], ids=["robin", "rescale", "rebalance"]
)
def test_a_cycle_starts_over_when_it_is_set_up_again(make: Callable[[], ChannelSelector]) -> None:
    selector = make()
    selector.setup(3)
    before = chosen(selector, range(4))
    selector.setup(3)
    assert chosen(selector, range(4)) == before
    selector.setup(1)
    assert chosen(selector, range(3)) == [0, 0, 0]


def test_forward_has_one_channel_and_refuses_more() -> None:
    selector = ForwardSelector()
    selector.setup(1)
    assert chosen(selector, "ab") == [0, 0]
    for channels in (0, 2):
        with pytest.raises(LocalUsageError, match=f"forward has one channel, not {channels}"):
            selector.setup(channels)


def test_global_sends_everything_to_channel_0_of_many() -> None:
    selector = GlobalSelector()
    selector.setup(7)
    assert chosen(selector, range(9)) == [0] * 9


def test_shuffle_reaches_every_channel_about_equally_often() -> None:
    """The draws of a seed never change, so neither do these counts."""
    selector = ShuffleSelector(seed=1)
    selector.setup(4)
    counts = Counter(chosen(selector, range(4_000)))
    assert sorted(counts) == [0, 1, 2, 3]
    assert all(850 < count < 1_150 for count in counts.values()), counts


def test_a_shuffle_repeats_with_its_seed_and_differs_from_another() -> None:
    draws = []
    for seed in (1, 1, 2):
        selector = ShuffleSelector(seed)
        selector.setup(5)
        draws.append(chosen(selector, range(3_000)))
    assert draws[0] == draws[1] != draws[2]
    assert draws[0] != sorted(draws[0])


def test_a_shuffle_set_up_with_fewer_channels_draws_only_those() -> None:
    selector = ShuffleSelector()
    selector.setup(9)
    chosen(selector, range(10))
    selector.setup(2)
    assert set(chosen(selector, range(100))) == {0, 1}


@pytest.mark.parametrize("channels", [1, 3, 10])
def test_a_key_goes_to_the_subtask_that_owns_its_group(channels: int) -> None:
    selector = KeyGroupSelector(lambda value: value[0], 10)
    selector.setup(channels)
    for key in ("JFK", "LGA", 5, -5, 2.5, b"x", None, True, ("a", 1)):
        expected = operator_index_of(key_group_of(key, 10), 10, channels)
        assert chosen(selector, [(key, 1), (key, 2)]) == [expected, expected], key


def test_keys_that_are_equal_in_python_and_not_in_java_are_kept_apart() -> None:
    selector = KeyGroupSelector(identity, 128)
    selector.setup(128)
    expected = [key_group_of(key, 128) for key in (1, 1.0, True)]
    assert len(set(expected)) == 3
    assert chosen(selector, [1, 1.0, True]) == expected
    assert chosen(selector, [True, 1.0, 1]) == expected[::-1]
    assert chosen(selector, [(1,), (1.0,), (True,)]) == [key_group_of((key,), 128) for key in (1, 1.0, True)]


def test_a_key_of_a_declared_type_is_hashed_as_that_type() -> None:
    selector = KeyGroupSelector(identity, 128, INT)
    selector.setup(128)
    assert chosen(selector, [-1, -1]) == [key_group_of(-1, 128, INT)] * 2


def test_another_number_of_channels_forgets_where_keys_went() -> None:
    selector = KeyGroupSelector(identity, 128)
    selector.setup(64)
    keys = [f"key-{number}" for number in range(50)]
    chosen(selector, keys)
    selector.setup(2)
    assert chosen(selector, keys) == [operator_index_of(key_group_of(key, 128), 128, 2) for key in keys]


def test_more_subtasks_than_key_groups_are_refused() -> None:
    selector = KeyGroupSelector(identity, 4)
    selector.setup(4)
    with pytest.raises(LocalUsageError, match="5 subtasks cannot share 4 key groups; raise max_parallelism"):
        selector.setup(5)


def test_a_broadcast_has_no_one_channel_to_select() -> None:
    """Flink: `BroadcastPartitionerTest`."""
    selector = BroadcastSelector()
    selector.setup(3)
    with pytest.raises(LocalUsageError, match="goes to all channels"):
        selector.select_channel("a")


def test_only_a_broadcast_says_that_it_is_one_and_names_differ() -> None:
    selectors = [
        RoundRobinSelector(), RescaleSelector(), RebalanceSelector(), ForwardSelector(), GlobalSelector(),
        ShuffleSelector(), KeyGroupSelector(identity, 1), BroadcastSelector(),
    ]  # fmt: skip
    assert [selector.name for selector in selectors if selector.is_broadcast] == ["broadcast"]
    assert len({selector.name for selector in selectors}) == len(selectors)


def test_minus_zero_has_one_channel_whatever_came_before() -> None:
    found = []
    for order in ((0.0, -0.0), (-0.0, 0.0)):
        selector = KeyGroupSelector(lambda value: value, 128)
        selector.setup(16)
        found.append({math.copysign(1, value): selector.select_channel(value) for value in order})
    assert found[0] == found[1]
    assert found[0][1.0] != found[0][-1.0]
