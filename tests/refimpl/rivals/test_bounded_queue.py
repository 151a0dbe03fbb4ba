"""A full queue stops the connection, and so all that share it."""

from __future__ import annotations

from refimpl.rivals import INNOCENT, SLOW, SOURCE, BoundedQueue, bounded_queue


def test_a_full_queue_stops_the_connection_for_both_branches() -> None:
    system = BoundedQueue()
    for number in range(bounded_queue.QUEUE_SIZE + 1):
        system.enqueue(SOURCE, SLOW, float(number), 0.0)
        system.arrive(1, SLOW, float(number), 0.0)
    system.enqueue(SOURCE, INNOCENT, 0.0, 0.0)
    system.arrive(1, INNOCENT, 0.0, 0.0)
    assert system.dequeue(1, INNOCENT, 0.0) is None  # it has come, and is behind one that waits in put
    assert system.can_enqueue(SOURCE, INNOCENT)
    while system.can_enqueue(SOURCE, INNOCENT):
        system.enqueue(SOURCE, INNOCENT, 0.0, 0.0)
    assert system.may_emit(SLOW, 0.0) == system.may_emit(INNOCENT, 0.0) == float("inf")
    assert system.measure().queued == bounded_queue.QUEUE_SIZE + bounded_queue.CONNECTION_SIZE
    assert system.dequeue(1, SLOW, 0.0) == 0.0
    assert system.dequeue(1, INNOCENT, 0.0) == 0.0
    assert system.may_emit(INNOCENT, 0.0) == 0.0


def test_records_stay_in_order() -> None:
    system = BoundedQueue()
    for number in range(5):
        system.enqueue(SOURCE, SLOW, float(number), 0.0)
        system.arrive(1, SLOW, float(number), 0.0)
    assert [system.dequeue(1, SLOW, 0.0) for _ in range(6)] == [0.0, 1.0, 2.0, 3.0, 4.0, None]
