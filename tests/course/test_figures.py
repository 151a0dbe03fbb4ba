"""The runs behind figures: what a function does to the other branch of a job depends on object reuse."""

import pytest

from course.figures.flights import delays_beside


@pytest.mark.parametrize("object_reuse", [True, False])
def test_a_changed_flight_is_seen_by_the_other_branch_only_if_the_object_is_the_same(object_reuse):
    def never_early(flight):
        flight["dep_delay_minutes"] = max(0, flight["dep_delay_minutes"])
        return flight

    untouched = delays_beside(lambda flight: flight, object_reuse=object_reuse)
    assert min(untouched) < 0 < max(untouched)
    seen = delays_beside(never_early, object_reuse=object_reuse)
    assert seen == ([max(0, delay) for delay in untouched] if object_reuse else untouched)
