"""Which subtasks begin again when one has failed."""

from __future__ import annotations

import random

from refimpl.cluster import Exchange, regions, to_restart


def all_to_all(producers: str, consumers: str, is_blocking: bool = False) -> list[Exchange[str]]:
    return [Exchange(p, c, is_blocking) for p in producers.split() for c in consumers.split()]


PLACES = ["a0", "a1", "b0", "b1", "c0", "c1"]


def test_pipelined_exchanges_make_one_region_and_blocking_ones_part_them() -> None:
    """Flink: PipelinedRegionComputeUtilTest#testTwoComponentsViaBlockingExchange."""
    pipelined = all_to_all("a0 a1", "b0 b1")
    assert regions(PLACES, pipelined) == [frozenset({"a0", "a1", "b0", "b1"}), frozenset({"c0"}), frozenset({"c1"})]
    both = pipelined + all_to_all("b0 b1", "c0 c1", is_blocking=True)
    assert regions(PLACES, both) == [frozenset({"a0", "a1", "b0", "b1"}), frozenset({"c0"}), frozenset({"c1"})]


def test_with_pipelined_exchanges_only_all_that_hang_together_begin_again() -> None:
    exchanges = [Exchange("a0", "b0"), Exchange("a1", "b1"), Exchange("b0", "c0"), Exchange("b1", "c1")]
    assert to_restart(["b0"], PLACES, exchanges) == {"a0", "b0", "c0"}


def test_who_reads_a_blocking_result_begins_again_without_who_made_it() -> None:
    """Flink: RestartPipelinedRegionFailoverStrategyTest#testRegionFailoverForRegionInternalErrors."""
    exchanges = all_to_all("a0 a1", "b0 b1", is_blocking=True) + all_to_all("b0 b1", "c0 c1", is_blocking=True)
    assert to_restart(["c1"], PLACES, exchanges) == {"c1"}
    assert to_restart(["b0"], PLACES, exchanges) == {"b0", "c0", "c1"}


def test_a_result_that_is_gone_is_made_again_and_all_who_read_it_read_again() -> None:
    """As RestartPipelinedRegionFailoverStrategyTest has it, with results that are there and that are not."""
    exchanges = all_to_all("a0 a1", "b0 b1", is_blocking=True) + all_to_all("b0 b1", "c0 c1", is_blocking=True)
    assert to_restart(["c1"], PLACES, exchanges, lambda place: place != "b0") == {"b0", "c0", "c1"}
    gone = to_restart(["c1"], PLACES, exchanges, lambda place: place not in ("b0", "a1"))
    assert gone == {"a1", "b0", "b1", "c0", "c1"}


def test_it_is_the_least_set_that_the_three_rules_close() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        places = list(range(rng.randrange(2, 12)))
        pairs = [(a, b) for a in places for b in places if a < b and rng.random() < 0.25]
        exchanges = [Exchange(a, b, rng.random() < 0.5) for a, b in pairs]
        lost = {place for place in places if rng.random() < 0.2}
        failed = {rng.choice(places)}
        expected = set(failed)
        while True:
            more = set()
            for each in exchanges:
                if not each.is_blocking and (each.producer in expected) != (each.consumer in expected):
                    more |= {each.producer, each.consumer}
                elif each.is_blocking and each.producer in expected:
                    more.add(each.consumer)
                elif each.is_blocking and each.consumer in expected and each.producer in lost:
                    more.add(each.producer)
            if more <= expected:
                break
            expected |= more
        assert to_restart(failed, places, exchanges, lambda place, lost=lost: place not in lost) == expected, (
            f"seed {seed}"
        )
