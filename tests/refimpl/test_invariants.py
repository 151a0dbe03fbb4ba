"""Each law by itself: it holds in the middle of a job, and says what is wrong when one thing is tampered with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from refimpl.config import Config
from refimpl.invariants import check_all, check_end, check_liveness, check_memory, check_segments
from refimpl.job import Deployment, StreamEnvironment
from refimpl.memory import Buffer, LocalBufferPool
from refimpl.records import EndOfSuperstep
from refimpl.trace import Trace


def deployment_after(rounds: int) -> Deployment:
    """Source → map → broadcast → two sinks, each task stepped `rounds` times at most."""
    environment = StreamEnvironment(Config(segment_size_bytes=32, num_buffers=30, source_batch=4))
    mapped = environment.from_collection(range(30)).rebalance().map(abs).set_parallelism(2)
    mapped.broadcast().sink([].append).set_parallelism(2)
    deployment = Deployment(environment, Trace())
    for _ in range(rounds):
        for task in deployment.tasks:
            if task.is_runnable:
                task.step()
        for partition in deployment.partitions:
            partition.flush_all()
    return deployment


def in_the_middle() -> Deployment:
    deployment = deployment_after(3)
    assert not deployment.is_done
    assert lent(deployment)
    return deployment


def at_the_end() -> Deployment:
    deployment = deployment_after(200)
    assert deployment.is_done
    return deployment


def lent(deployment: Deployment) -> list[tuple[LocalBufferPool, Buffer]]:
    return [(part.pool, buffer) for part in deployment.partitions for buffer in part.pool.lent.values()]


@pytest.mark.parametrize("rounds", range(0, 20, 2))
def test_the_laws_hold_between_any_two_rounds(rounds: int) -> None:
    deployment = deployment_after(rounds)
    check_all(deployment)
    assert deployment.pool.num_free <= 30


def test_a_job_that_ended_well_passes_every_law() -> None:
    deployment = at_the_end()
    check_end(deployment)
    assert lent(deployment) == []


# -- one thing wrong -------------------------------------------------------------------------------


def lose_a_free_segment(deployment: Deployment) -> None:
    deployment.pool._free.popleft()


def lend_and_keep_a_segment(deployment: Deployment) -> None:
    deployment.pool._free.append(lent(deployment)[0][1].segment)


def hold_a_buffer_secretly(deployment: Deployment) -> None:
    lent(deployment)[0][1].retain()


def drop_a_reference(deployment: Deployment) -> None:
    lent(deployment)[0][1].num_references -= 1


def miscount_what_is_out(deployment: Deployment) -> None:
    lent(deployment)[0][0].num_requested += 1


def lie_twice_idle(deployment: Deployment) -> None:
    pool, buffer = lent(deployment)[0]
    pool._idle.append(buffer.segment)


SEGMENTS = [
    (lose_a_free_segment, r"nobody holds segment \d+"),
    (lend_and_keep_a_segment, r"segment \d+ is with the global pool and with .* \(lent\)[\s\S]*request"),
    (hold_a_buffer_secretly, r"its buffer counts \d references, \d holders can be found[\s\S]*request"),
    (drop_a_reference, r"its buffer counts \d references, \d holders can be found"),
    (miscount_what_is_out, r"requested \d+ segments, \d+ can be found"),
    (lie_twice_idle, r"segment \d+ is with .* \(idle\) and with .* \(lent\)"),
]


@pytest.mark.parametrize(("tamper", "said"), SEGMENTS, ids=[tamper.__name__ for tamper, _ in SEGMENTS])
def test_every_segment_is_in_one_place_with_the_references_that_can_be_found(
    tamper: Callable[[Deployment], None], said: str
) -> None:
    deployment = in_the_middle()
    tamper(deployment)
    with pytest.raises(AssertionError, match=said):
        check_segments(deployment)


def test_pools_hold_together_what_there_is() -> None:
    deployment = in_the_middle()
    deployment.pool._free.popleft()
    said = r"\d+ segments are with local pools, 0 with remote channels and \d+ are free, together not 30"
    with pytest.raises(AssertionError, match=said):
        check_memory(deployment)


def test_pools_are_promised_together_no_more_than_there_is() -> None:
    deployment = in_the_middle()
    deployment.partitions[0].pool.size += 30
    said = r"local pools may use \d+ segments and remote channels have 0, there are 30"
    with pytest.raises(AssertionError, match=said):
        check_memory(deployment)


def test_what_cannot_move_must_be_done() -> None:
    with pytest.raises(AssertionError, match="nothing can move, but source-0 is made; its outputs: "):
        check_liveness(in_the_middle())


def test_at_the_end_every_record_emitted_has_arrived() -> None:
    deployment = at_the_end()
    deployment.task("sink-1").chain.num_records_in -= 1
    with pytest.raises(AssertionError, match="60 records were emitted to sink, 59 arrived"):
        check_end(deployment)


def test_at_the_end_every_queue_has_been_read() -> None:
    deployment = at_the_end()
    subpartition = deployment.partitions[0].subpartitions[0]
    subpartition._is_finished = False
    deployment.partitions[0].broadcast_event(EndOfSuperstep())
    with pytest.raises(AssertionError, match="was not read to its end"):
        check_end(deployment)


def test_at_the_end_no_writer_keeps_a_buffer() -> None:
    deployment = at_the_end()
    writer = next(iter(deployment.writers.values()))
    writer._open(0)
    assert len(writer.open_builders) == 1
    check_all(deployment)  # it is held, and known to be held
    with pytest.raises(AssertionError, match="source-0 → map still has buffers out"):
        check_end(deployment)
