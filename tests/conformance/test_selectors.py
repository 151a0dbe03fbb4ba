"""Which channel each record leaves through, as the selectors of Flink 1.11.4 and 2.2.1 chose."""

from __future__ import annotations

import math

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
)

TOPIC = "selectors"
BY_VERSION = False

SEED = 11


def selector_of(case: dict) -> ChannelSelector:
    match case["selector"]:
        case "rebalance":
            return RebalanceSelector(SEED)
        case "rescale":
            return RescaleSelector()
        case "round_robin":
            return RoundRobinSelector()
        case "global":
            return GlobalSelector()
        case "forward":
            return ForwardSelector()
        case "broadcast":
            return BroadcastSelector()
        case "shuffle":
            return ShuffleSelector(SEED)
        case "keygroup":
            return KeyGroupSelector(lambda key: key, case["max_parallelism"])
    pytest.skip(f"selector {case['selector']} is not described in the format")


def start_where_flink_did(selector: ChannelSelector, case: dict) -> None:
    """Rebalance starts anywhere: check that ours does, then start where Flink's did; the others do so by themselves.

    Flink's state is the channel of the record before.
    """
    if "state_after_setup" not in case:
        return
    state, channels = case["state_after_setup"], case["channels"]
    first = next(selector.turns)
    if case["selector"] == "rebalance":
        assert 0 <= first < channels
        selector.begin_after(state, channels)
    else:
        assert first == (state + 1) % channels
        selector.setup(channels)


def check_shuffle(selector: ChannelSelector, case: dict) -> None:
    """Uniform and independent: counts, and repeats of the channel before, within six deviations."""
    channels, draws = case["channels"], case["draws"]
    drawn = [selector.select_channel(None) for _ in range(draws)]
    share = 1 / channels
    slack = 6 * math.sqrt(draws * share * (1 - share))
    counts = [drawn.count(channel) for channel in range(channels)]
    assert sum(counts) == draws == sum(case["counts"])
    repeats = sum(now == before for now, before in zip(drawn[1:], drawn[:-1], strict=True))
    for theirs, ours in [*zip(case["counts"], counts, strict=True), (case["same_as_previous"], repeats)]:
        assert abs(ours - draws * share) <= slack + 1, f"seed {SEED}: {counts}, {repeats} repeats"
        assert abs(theirs - draws * share) <= slack + 1


def test_records_leave_through_the_channels_flink_chose(case: dict) -> None:
    selector = selector_of(case)
    selector.setup(case["channels"])
    assert selector.is_broadcast is case["is_broadcast"]
    if "select_channel" in case:
        with pytest.raises(LocalUsageError, match="all channels"):
            selector.select_channel("any")
        return
    start_where_flink_did(selector, case)
    if "draws" in case:
        check_shuffle(selector, case)
        return
    values = case.get("keys", [None] * len(case["sequence"]))
    assert [selector.select_channel(value) for value in values] == case["sequence"]
    # A second time: what is remembered must not change the answer.
    if "keys" in case:
        assert [selector.select_channel(value) for value in values] == case["sequence"]
