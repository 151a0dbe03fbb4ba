"""Credit: how a consumer tells a producer how much it may send, and nothing else.

The rule of the whole engine in one sentence: *a producer sends a data buffer only if the consumer has
an empty buffer waiting for exactly that one.* An empty buffer that was promised to the producer is one
credit. So nothing that was sent ever waits on the wire for memory, and a slow channel cannot hold up
the channels that share its connection.

Four numbers say where the empty buffers of one channel stand:

    required     how many the channel wants: what waits at the producer (the backlog), plus its own
                 exclusive buffers, which stay here for what the producer has not written yet
    available    how many it has
    unannounced  how many of these the producer has not been told about
    promised     how many it has been told about and has not used: credit on its way, credit at the
                 producer, and data on its way

                        backlog                         data buffer
    producer  ------------------------------------------------------>  consumer
              <------------------------------------------------------
                        AddCredit(unannounced)

Two traps. The backlog is a *level*: each one replaces the last. Credit is a *flow*: each announcement
adds to the last. And a buffer that is available is not therefore unannounced: it stays available until
data arrives in it, so to announce "available" each time would promise the same buffer twice.
"""

from __future__ import annotations

from refimpl.errors import LocalUsageError

__all__ = ["ConsumerCredit"]


class ConsumerCredit:
    """The credit of one channel, as its consumer counts it. Numbers are buffers.

    A channel starts with its `num_exclusive` buffers, all promised: the request for the partition
    carries that number, so no announcement is needed for the first data to flow.

    Flink:   RemoteInputChannel, BufferManager (runtime.io.network.partition.consumer), 1.11.4
    Differs: these lines are spread over the two classes there. `num_promised` is not counted there:
             Flink notices data without credit only when no buffer is left, we notice it at once.
    Invariant: available == unannounced + promised
    """

    __slots__ = ("num_exclusive", "num_promised", "num_required", "num_unannounced")

    def __init__(self, num_exclusive: int) -> None:
        if num_exclusive < 1:
            raise LocalUsageError(f"a channel needs at least 1 exclusive buffer, not {num_exclusive}")
        self.num_exclusive = num_exclusive
        self.num_required = 0  # nothing is known of the producer yet
        self.num_unannounced = 0
        self.num_promised = num_exclusive

    def __repr__(self) -> str:
        return (
            f"ConsumerCredit(required={self.num_required}, unannounced={self.num_unannounced}, "
            f"promised={self.num_promised})"
        )

    @property
    def num_available(self) -> int:
        """Empty buffers the channel must have for these numbers to be true."""
        return self.num_unannounced + self.num_promised

    def add(self, num_buffers: int) -> bool:
        """Count new empty buffers; true if there was nothing to announce before and now there is.

        Only then must the connection be told: it asks for the sum when it can send.
        """
        was_silent = self.num_unannounced == 0
        self.num_unannounced += num_buffers
        return was_silent and self.num_unannounced > 0

    def announce(self) -> int:
        """Promise what was not announced yet; return how much that is. 0 means: send nothing."""
        announced = self.num_unannounced
        self.num_unannounced = 0
        self.num_promised += announced
        return announced

    def use(self) -> None:
        """A data buffer has come, and has used one promise."""
        assert self.num_promised > 0, f"{self}: data came without credit and was let in"
        self.num_promised -= 1
