"""When a consumer is started: at once, with the first output, or after the last; and what goes with what.

Three things are chosen for an edge, and not all go together: whether its result is read while it is written, whether
the stream has an end, and when its consumer starts. One function, `why_not`, says which, and nothing else decides it:

    result      stream      at once                  with the first output      after the last output
    pipelined   unbounded   yes: streaming           yes, of no use             refused: it would never start
    pipelined   bounded     yes, it waits for slots  yes: batch                 refused: the producer waits for it
    blocking    bounded     refused: reads too soon  refused, the same          yes: batch
    blocking    unbounded   refused: never finished  refused, the same          refused, the same
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from refimpl.errors import LocalUsageError
from refimpl.producer.partition_type import ResultPartitionType

__all__ = ["Boundedness", "CombinationRule", "ConsumerStart", "check_combination", "why_not"]


class Boundedness(Enum):
    """Whether a stream has an end.

    Flink:   Boundedness (api.connector.source), 1.11.4
    """

    BOUNDED = "bounded"
    UNBOUNDED = "unbounded"


class ConsumerStart(Enum):
    """When the consumer of a result is started.

    Flink:   ScheduleMode EAGER, LAZY_FROM_SOURCES (runtime.jobgraph), 1.11.4; there the last two are one mode, and the
             result decides.
    """

    AT_ONCE = "at once"
    WITH_FIRST_OUTPUT = "with the first output"
    AFTER_LAST_OUTPUT = "after the last output"


CombinationRule = Callable[[ResultPartitionType, Boundedness, ConsumerStart], str | None]
"""Says why the three do not go together, in words; `None` if they do."""


def why_not(result: ResultPartitionType, boundedness: Boundedness, start: ConsumerStart) -> str | None:
    """Why an edge with this result, this stream and this start of its consumer cannot run, in words; `None` if it can.

    How many buffers a result may have is of no matter here: every pool ends somewhere.
    """
    is_last = start is ConsumerStart.AFTER_LAST_OUTPUT
    if result.is_blocking and boundedness is Boundedness.UNBOUNDED:
        return "it is read when it is finished, and a stream without an end never is; make the result pipelined"
    if result.is_blocking and not is_last:
        return "the consumer would read before it is finished; start it after the last output"
    if result.is_blocking or not is_last:
        return None
    if boundedness is Boundedness.UNBOUNDED:
        return "a stream without an end has no last output, so the consumer would never start"
    return "the producer waits for buffers that only the consumer gives back; make the result blocking"


def check_combination(
    result: ResultPartitionType,
    boundedness: Boundedness,
    start: ConsumerStart,
    rule: CombinationRule = why_not,
) -> None:
    """Refuse what cannot run, as `rule` says.

    Raises:
        LocalUsageError: the three do not go together; all are named, with the reason.
    """
    why = rule(result, boundedness, start)
    if why is not None:
        raise LocalUsageError(
            f"a {result.name} result of a stream that is {boundedness.value}, with a consumer that starts "
            f"{start.value}, cannot run: {why}"
        )
