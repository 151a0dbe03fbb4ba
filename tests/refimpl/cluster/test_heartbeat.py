"""Who is asked whether it lives, and when it counts as gone."""

from __future__ import annotations

import random

import pytest

from refimpl.cluster import AskForHeartbeat, Heartbeats, PeerIsSilent
from refimpl.errors import LocalUsageError


def test_a_peer_that_is_silent_for_the_timeout_is_told_once() -> None:
    """Flink: HeartbeatManagerTest#testHeartbeatTimeout (P114)."""
    heartbeats = Heartbeats(asks=False)
    heartbeats.watch("tm", 0)
    assert heartbeats.next_deadline == 50_000
    assert heartbeats.on_timeout(49_999) == []
    assert heartbeats.on_timeout(50_001) == [PeerIsSilent("tm", 50_001)]
    assert heartbeats.on_timeout(200_000) == []
    assert (heartbeats.peers, heartbeats.next_deadline) == ((), None)


def test_any_message_begins_the_silence_anew_and_one_after_the_end_does_not() -> None:
    """Flink: HeartbeatManagerTest#testHeartbeatMonitorUpdate."""
    heartbeats = Heartbeats(asks=False)
    heartbeats.watch("tm", 0)
    assert heartbeats.heard("tm", 40_000)
    assert heartbeats.on_timeout(89_999) == []
    assert heartbeats.on_timeout(90_000) == [PeerIsSilent("tm", 50_000)]
    assert not heartbeats.heard("tm", 90_001)
    assert not heartbeats.heard("stranger", 90_001)
    heartbeats.watch("tm", 100_000)
    assert heartbeats.heard("tm", 100_001)


def test_who_asks_does_so_every_ten_seconds_as_long_as_somebody_lives() -> None:
    """Flink: HeartbeatManagerTest#testHeartbeatCluster."""
    heartbeats = Heartbeats(asks=True)
    assert heartbeats.next_deadline is None
    heartbeats.watch("a", 0)
    heartbeats.watch("b", 3_000)
    assert heartbeats.next_deadline == 10_000
    assert heartbeats.on_timeout(10_000) == [AskForHeartbeat("a"), AskForHeartbeat("b")]
    assert heartbeats.on_timeout(19_999) == []
    heartbeats.stop_watching("a")
    heartbeats.stop_watching("a")
    assert heartbeats.on_timeout(20_000) == [AskForHeartbeat("b")]
    assert heartbeats.on_timeout(53_000) == [PeerIsSilent("b", 50_000)]
    heartbeats.watch("c", 400_000)
    assert heartbeats.next_deadline == 410_000


def test_a_peer_that_is_watched_no_longer_is_never_told_of() -> None:
    """Flink: HeartbeatManagerTest#testTargetUnmonitoring."""
    heartbeats = Heartbeats(asks=False)
    heartbeats.watch("tm", 0)
    heartbeats.stop_watching("tm")
    assert not heartbeats.heard("tm", 1)
    assert heartbeats.on_timeout(1e9) == []


@pytest.mark.parametrize(("interval_ms", "timeout_ms"), [(0, 10), (10, 10), (-1, 5)])
def test_an_interval_that_cannot_work_is_refused(interval_ms: float, timeout_ms: float) -> None:
    """Flink: HeartbeatServices.fromConfiguration."""
    with pytest.raises(LocalUsageError, match="interval"):
        Heartbeats(True, interval_ms, timeout_ms)


def test_at_its_deadline_a_peer_is_told_of_whatever_the_time_rounds_to() -> None:
    """With some of these times the timeout is longer than deadline minus last word, by a rounding."""
    rounded = 0
    for seed in range(200):
        heard_ms = random.Random(seed).uniform(0, 1e5)
        heartbeats = Heartbeats(asks=False)
        heartbeats.watch("tm", heard_ms)
        deadline_ms = heartbeats.next_deadline
        assert deadline_ms is not None
        rounded += deadline_ms - heard_ms < 50_000
        (told,) = heartbeats.on_timeout(deadline_ms)
        assert isinstance(told, PeerIsSilent), f"seed {seed}"
        assert heartbeats.next_deadline is None
    assert rounded, "no time of these rounds so"
