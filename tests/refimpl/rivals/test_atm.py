"""N23: balance, absolute credit, allocation."""

from __future__ import annotations

from random import Random

import pytest

from refimpl.errors import LocalUsageError
from refimpl.rivals import SINK, SLOW, AtmCredit, Course, CreditReceiver, CreditSender, Workload, allocate, atm
from refimpl.rivals.atm import best_rate, buffers_for


def test_a_sender_sends_while_its_balance_is_above_zero() -> None:
    sender = CreditSender(3)
    for left in (2, 1, 0):
        sender.send()
        assert sender.balance == left
    with pytest.raises(LocalUsageError, match="no credit"):
        sender.send()
    sender.receive_credit(2)
    assert sender.balance == 2


def test_a_receiver_tells_the_absolute_count_after_each_n2_cells() -> None:
    receiver = CreditReceiver(n2=3)
    assert [receiver.forward() for _ in range(7)] == [None, None, 3, None, None, 6, None]
    assert atm.N2 == 10


@pytest.mark.parametrize("seed", range(20))
def test_lost_credit_cells_heal_with_the_next_and_relative_ones_would_not(seed: int) -> None:
    draws = Random(seed)
    sender, receiver, relative = CreditSender(20), CreditReceiver(5), 20
    for _ in range(2_000):
        if sender.balance > 0:
            sender.send()
            relative -= 1
            count = receiver.forward()
            if count is not None and draws.random() > 0.3:
                sender.receive_credit(count)
                relative += 5
        else:  # all in a row were lost: the receiver says it again, as it does from time to time
            sender.receive_credit(receiver.num_forwarded // 5 * 5)
    sender.receive_credit(receiver.num_forwarded)
    assert sender.balance == 20
    assert relative < 0  # it would have stopped long ago


def test_an_old_credit_cell_changes_nothing() -> None:
    sender = CreditSender(4)
    for _ in range(4):
        sender.send()
    sender.receive_credit(3)
    sender.receive_credit(1)
    assert sender.balance == 3


def test_the_allocation_is_n2_and_what_is_on_its_way_in_a_round_trip() -> None:
    assert buffers_for(20, 600, n2=10) == 22
    assert best_rate(10, 12, 12) == 1
    assert best_rate(10, 2, 20) == pytest.approx(12 / 30)
    assert best_rate(1, 50, 20) == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_pool_is_shared_by_recent_use_and_each_has_n2(seed: int) -> None:
    draws = Random(seed)
    used = [draws.randrange(50) for _ in range(draws.randrange(1, 9))]
    pool = draws.randrange(10 * len(used), 400)
    shares = allocate(pool, used)
    assert sum(shares) == pool
    assert min(shares) >= 10
    for one in range(len(used)):
        for other in range(len(used)):
            assert used[one] <= used[other] or shares[one] >= shares[other] - 1


def test_a_pool_in_proportion() -> None:
    assert allocate(100, [30, 10], n2=10) == [70, 30]
    assert allocate(21, [0, 0], n2=10) in ([11, 10], [10, 11])
    with pytest.raises(LocalUsageError, match="cannot give 10 to each of 3"):
        allocate(29, [1, 1, 1])


@pytest.mark.parametrize("end_to_end", [False, True])
def test_no_receiver_ever_holds_more_than_it_promised(end_to_end: bool) -> None:
    system = AtmCredit(10.0, 600.0, end_to_end=end_to_end)
    course = Course(system, Workload(2), 10.0)
    longest = 0
    for tenth in range(600, 900):
        course.run_until(tenth * 100.0)
        longest = max(longest, len(system.queues[SINK, SLOW]))
    assert system.allocation - 10 <= longest <= system.allocation


def test_end_to_end_needs_buffers_by_the_length_of_the_path() -> None:
    per_link, end_to_end = AtmCredit(10.0, 600.0), AtmCredit(10.0, 600.0, end_to_end=True)
    assert per_link.allocation == 10 + 12
    assert end_to_end.allocation == 10 + 24
    assert end_to_end.buffers_needed > per_link.buffers_needed
