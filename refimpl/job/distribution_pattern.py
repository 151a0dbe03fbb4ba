"""Which subtask of a producer has a channel to which subtask of its consumer."""

from __future__ import annotations

__all__ = ["channels_of"]


def channels_of(num_producers: int, num_consumers: int, is_pointwise: bool) -> list[list[int]]:
    """For each producing subtask, the consuming subtasks it has a channel to, in order.

    Flink:   ExecutionVertex.connectAllToAll, connectPointwise (runtime.executiongraph), 1.11.4
    Differs: exact whole numbers; Flink divides 32-bit floats, which for a few uneven pairs, such as
             14 producers and 16 consumers, moves a channel by one.
    """
    if not is_pointwise:
        return [list(range(num_consumers)) for _ in range(num_producers)]
    targets: list[list[int]] = [[] for _ in range(num_producers)]
    for consumer in range(num_consumers):
        if num_producers <= num_consumers:
            producers = range(
                consumer * num_producers // num_consumers,
                consumer * num_producers // num_consumers + 1,
            )
        else:
            producers = range(
                consumer * num_producers // num_consumers,
                (consumer + 1) * num_producers // num_consumers,
            )
        for producer in producers:
            targets[producer].append(consumer)
    return targets
