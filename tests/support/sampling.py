"""Which of many tests of one kind are in an ordinary run: `sampled(one_in=4)` is one in four, always the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from zlib import crc32

import pytest

__all__ = ["places", "sample"]


def sample(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """All tests that are not sampled by number, and the sample of those that are."""
    groups: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        one_in = max((int(mark.kwargs.get("one_in", 1)) for mark in item.iter_markers("sampled")), default=1)
        groups.setdefault((item.nodeid.partition("[")[0], one_in), []).append(item)
    for (name, one_in), group in groups.items():
        yield from (group[each] for each in places(name, len(group), one_in))


def places(name: str, num_tests: int, one_in: int) -> range:
    """Where the sample stands among so many tests; where it begins depends on the name, and one is always in it.

    So tests of several functions that have the same parameters are not all sampled at the same ones.
    """
    return range(crc32(name.encode()) % max(1, min(one_in, num_tests)), num_tests, one_in)
