"""The arithmetic of credit, seen by the consumer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.errors import LocalUsageError
from refimpl.exchange import ConsumerCredit


def test_the_exclusive_buffers_are_promised_from_the_start() -> None:
    """Nothing is required yet, nothing is to be announced.

    Flink: `SingleInputGateTest#testRequestBuffersWithRemoteInputChannel`.
    """
    credit = ConsumerCredit(2)
    assert (credit.num_required, credit.num_unannounced, credit.num_promised) == (0, 0, 2)
    assert credit.announce() == 0


def test_a_channel_without_a_buffer_of_its_own_is_refused() -> None:
    with pytest.raises(LocalUsageError, match="at least 1 exclusive buffer, not 0"):
        ConsumerCredit(0)


def test_credit_is_a_flow_and_goes_out_as_one_number() -> None:
    """The amount is read when it is sent, so credit that came in between goes with it.

    Flink: `CreditBasedPartitionRequestClientHandlerTest#testNotifyCreditAvailable` (P78).
    """
    credit = ConsumerCredit(1)
    credit.add(2)
    credit.add(3)
    assert (credit.announce(), credit.announce()) == (5, 0)
    assert credit.num_promised == 6


def test_only_the_step_from_nothing_to_something_calls_for_the_connection() -> None:
    """Flink: `CreditBasedPartitionRequestClientHandlerTest#testNotifyCreditAvailable` (P78)."""
    credit = ConsumerCredit(1)
    assert [credit.add(0), credit.add(1), credit.add(1), credit.add(0)] == [False, True, False, False]
    credit.announce()
    assert credit.add(1)


def test_data_that_nobody_promised_to_take_is_our_bug() -> None:
    credit = ConsumerCredit(1)
    credit.add(1)  # available, but not announced: it does not count
    credit.use()
    with pytest.raises(AssertionError, match="without credit"):
        credit.use()


@given(st.lists(st.sampled_from(["add", "announce", "use"])))
def test_every_empty_buffer_is_promised_or_unannounced(steps: list[str]) -> None:
    credit = ConsumerCredit(2)
    num_empty = 2
    for step in steps:
        if step == "add":
            credit.add(1)
            num_empty += 1
        elif step == "announce":
            credit.announce()
        elif credit.num_promised:
            credit.use()
            num_empty -= 1
        assert credit.num_available == num_empty >= credit.num_promised >= 0
