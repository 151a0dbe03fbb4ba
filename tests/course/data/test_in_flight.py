"""What waits in channels when a barrier overtakes it is in the checkpoint, and arrives after a crash, once."""

from __future__ import annotations

import pytest

from course.data.in_flight import checkpoint_what_waits

AROUND = 6  # what a short text has around its letters on the stream


@pytest.mark.parametrize("nums", [(1, 1), (9, 40, 3)])
def test_the_checkpoint_holds_the_bytes_of_each_airport(nums: tuple[int, ...]):
    flights = {f"A{place}": [f"A{place}-{number}" for number in range(num)] for place, num in enumerate(nums)}
    waited = checkpoint_what_waits(flights)
    assert waited.copied_bytes == {name: sum(len(each) + AROUND for each in sent) for name, sent in flights.items()}
    assert sorted(waited.arrived) == sorted(each for sent in flights.values() for each in sent)
    for name, sent in flights.items():
        assert [each for each in waited.arrived if each.startswith(f"{name}-")] == sent
