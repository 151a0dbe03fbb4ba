"""The laws every run keeps, checked on the whole system and not on its parts; each has its file in `laws`.

    Segments    every segment has exactly one holder: the global pool, an idle place in a local pool,
                a remote channel, or one buffer; and a buffer has exactly the references to be found
    Credit      the empty buffers of a remote channel are those it will announce and those it has
                promised; the promises are on their way, with the producer, or data coming back
    Backlog     a remote channel wants what its producer last said waits there, and its own buffers
    Fairness    on a connection, a channel with data and credit waits at most one round
    Hunger      a remote channel that has more empty buffers than it wants takes no more
    Order       sequence numbers have no gaps (asserted where buffers are read)
    Records     at the end, every exchange delivered what was emitted
    Cut         what was sent before a complete checkpoint was processed before it, or is in flight in it
    State       what tasks begin with after a failure is what they had at the cut
    Timers      each fires once, and none that is due is left when time has advanced
    Capture     behind its producer's cut a channel copies what there was credit for; nothing when none is captured
    Store       what a manifest that counts leads to is there (asked for by who has the store)
    Transactions  committed are those of complete checkpoints (asked for by who has the sink)
    Liveness    if nothing can move, everything is done
    Memory      no pool has more out than its size and overdraft; together they have what there is; after a failure
                all of it is home

And those of a cluster, which its simulation checks:

    Slots       what runs, runs in a slot of its job; at rest all members say the same of each slot
    Attempts    no subtask runs twice for one leader, and none while its next attempt is still to come
    Fencing     nobody acts on what is for another leadership, or of one that is over

A broken law is our bug: an `AssertionError` that names the segment and tells its story.
"""

from __future__ import annotations

from collections.abc import Iterable

from refimpl.job.deployment import Deployment
from refimpl.laws.holders import local_pools_of
from refimpl.laws.liveness import check_liveness
from refimpl.laws.memory import check_memory
from refimpl.laws.records import RecordCounts, check_records
from refimpl.laws.segments import check_segments

__all__ = ["check_all", "check_end", "check_end_here", "check_nothing_left"]


def check_all(*deployments: Deployment) -> None:
    """The laws that hold between any two steps, on every TaskManager by itself.

    The deployments are all that have taken anything from their pools.
    """
    by_pool: dict[int, list[Deployment]] = {}
    for deployment in deployments:
        by_pool.setdefault(id(deployment.pool), []).append(deployment)
    for on_one_pool in by_pool.values():
        check_segments(*on_one_pool)
        check_memory(*on_one_pool)


def check_end(*deployments: Deployment) -> None:
    """A run that ended well left nothing behind, and every exchange delivered what was emitted.

    The deployments are those of all TaskManagers.
    """
    check_end_here(*deployments)
    check_records([RecordCounts.of(deployment) for deployment in deployments])


def check_end_here(*deployments: Deployment, beside: Iterable[Deployment] = ()) -> None:
    """On each of these TaskManagers, a run that ended well left nothing behind; others still run there `beside` it."""
    check_all(*deployments, *beside)
    check_nothing_left(*deployments)


def check_nothing_left(*deployments: Deployment) -> None:
    """What has ended well waits for nothing and holds nothing, whatever others do at this moment."""
    check_liveness(*deployments)
    for deployment in deployments:
        for partition in deployment.partitions:
            for subpartition in partition.subpartitions:
                assert subpartition.num_queued == 0, f"{subpartition} was not read to its end"
    for pool in local_pools_of(deployments):
        assert not pool.lent, f"{pool.name} still has buffers out"
