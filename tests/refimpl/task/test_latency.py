"""Latency markers: when sources send them, and what is known of their ages."""

from __future__ import annotations

from refimpl.records import LatencyMarker
from refimpl.task import LatencyMarksEmitter, LatencySnapshot, LatencyStats, ProcessingTimeService


def test_a_marker_is_sent_in_the_first_step_and_then_every_interval() -> None:
    time, sent = ProcessingTimeService(), list[LatencyMarker]()
    time.advance(1_000)
    LatencyMarksEmitter(time, sent.append, 10, source_id=4, subtask=2)
    times = []
    for now_ms in (1_003, 1_009, 1_010, 1_019, 1_047, 1_049, 1_050):
        time.advance(now_ms)
        time.fire_due()
        times.append([marker.marked_time for marker in sent])
        assert all(marker == LatencyMarker(marker.marked_time, 4, 0, 2) for marker in sent)
        sent.clear()
    assert times == [[1_003], [], [1_010], [], [1_047], [], [1_050]]


def test_ages_are_kept_by_source() -> None:
    stats = LatencyStats()
    for age_ms in range(1, 101):
        stats.report(LatencyMarker(1_000, 7, 0, age_ms % 3), 1_000 + age_ms)
    stats.report(LatencyMarker(1_000, 8, 0, 0), 995)
    assert stats.snapshots("map", 1, {7: "rows"}) == [
        LatencySnapshot("rows", "map", 1, 100, 1, 100, 50.5, 50, 95, 99),
        LatencySnapshot("8", "map", 1, 1, -5, -5, -5.0, -5, -5, -5),
    ]


def test_only_the_last_128_ages_count_besides_their_number() -> None:
    """Flink: metrics.latency.history-size."""
    stats = LatencyStats()
    for age_ms in [9_999, *[5] * 128]:
        stats.report(LatencyMarker(0, 7, 0, 0), age_ms)
    (found,) = stats.snapshots("map", 0, {7: "rows"})
    assert (found.count, found.max_ms, found.mean_ms) == (129, 5, 5.0)


def test_before_the_first_marker_nothing_is_known() -> None:
    assert LatencyStats().snapshots("map", 0, {}) == []
