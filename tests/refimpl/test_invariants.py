"""Each law by itself: it holds in the middle of a job, and says what is wrong when one thing is tampered with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from refimpl.config import Config
from refimpl.consumer import RemoteInputChannel
from refimpl.drivers import Simulation
from refimpl.drivers.simulation.wire import Link, Way
from refimpl.exchange import ReaderSnapshot, encode
from refimpl.invariants import check_all, check_end
from refimpl.job import Deployment, StreamEnvironment
from refimpl.laws import FairnessLaw, check_liveness, check_memory, check_segments
from refimpl.memory import Buffer, LocalBufferPool
from refimpl.producer import SubpartitionState
from refimpl.records import EndOfSuperstep
from refimpl.task import IterableReader
from refimpl.trace import Trace


def deployment_after(rounds: int) -> Deployment:
    """Source → map → broadcast → two sinks, each task stepped `rounds` times at most."""
    environment = StreamEnvironment(Config(segment_size_bytes=32, num_buffers=30, source_batch=4))
    mapped = environment.from_collection(range(30)).rebalance().map(abs).set_parallelism(2)
    mapped.broadcast().sink([].append).set_parallelism(2)
    deployment = Deployment(environment.execution_graph(), trace=Trace())
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
    pool.idle.append(buffer.segment)


SEGMENTS = [
    (lose_a_free_segment, r"nobody holds segment \d+"),
    (lend_and_keep_a_segment, r"segment \d+ is with the global pool and with .* \(lent\)[\s\S]*queue"),
    (hold_a_buffer_secretly, r"its buffer counts \d references, \d holders can be found[\s\S]*queue"),
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
    subpartition.producer_state = SubpartitionState.OPEN
    deployment.partitions[0].broadcast_event(EndOfSuperstep())
    with pytest.raises(AssertionError, match="was not read to its end"):
        check_end(deployment)


def test_at_the_end_no_writer_keeps_a_buffer() -> None:
    deployment = at_the_end()
    writer = next(iter(deployment.writers.values()))
    writer.copy.open(0)
    assert len(writer.copy.open_builders) == 1
    check_all(deployment)  # it is held, and known to be held
    with pytest.raises(AssertionError, match="source-0 → map still has buffers out"):
        check_end(deployment)


# -- several TaskManagers --------------------------------------------------------------------------

NAME = "tm-1 reads tm-0"


def far(num_steps: int, check_every: int = 1) -> Simulation:
    """Two sources on tm-0, two sinks on tm-1, each sink reading both; full buffers, and full wires."""
    config = Config(
        segment_size_bytes=32, num_buffers=40, source_batch=4, buffers_per_channel=2, floating_buffers_per_gate=3
    )
    environment = StreamEnvironment(config, parallelism=2)
    source = environment.source(lambda _i, _n: IterableReader(range(60)))
    source.rebalance().sink([].append).slot_sharing_group("far")
    simulation = Simulation(
        environment, seed=1, check_every=check_every, trace=Trace(), num_task_managers=2, max_delay_ms=0.05
    )
    return simulation.run(max_steps=num_steps)


def halfway() -> tuple[Simulation, Link, RemoteInputChannel]:
    """With the channel that has the most data."""
    simulation = far(100)
    link = simulation.links[NAME]
    channel = max(simulation.deployments[1].shuffle.remote_channels, key=lambda each: len(each.held_buffers))
    simulation.check()
    assert link.messages(Way.RESPONSES)
    return simulation, link, channel


@pytest.mark.parametrize("check_every", [1, 2, 7])
def test_the_laws_of_several_task_managers_hold_however_often_they_are_checked(check_every: int) -> None:
    with far(10_000, check_every) as simulation:
        assert simulation.is_done
    assert [each.pool.num_free for each in simulation.deployments] == [40, 40]


def announce_too_much(link: Link, channel: RemoteInputChannel) -> None:
    channel.buffers.credit.num_unannounced += 1


def promise_what_is_not_there(link: Link, channel: RemoteInputChannel) -> None:
    channel.buffers.credit.num_promised += 1


def add_credit_at_the_producer(link: Link, channel: RemoteInputChannel) -> None:
    link.producer.readers[channel.receiver].credit += 1


def lose_a_buffer_on_the_way(link: Link, channel: RemoteInputChannel) -> None:
    link._on_the_way[Way.RESPONSES].popleft()


def run_into_debt(link: Link, channel: RemoteInputChannel) -> None:
    link.producer.readers[channel.receiver].credit = -2


def want_too_much(link: Link, channel: RemoteInputChannel) -> None:
    channel.buffers.credit.num_required += 1


CREDIT = [
    (announce_too_much, r"has \d+ empty buffers, \d+ promised and \d+ to be announced"),
    (promise_what_is_not_there, r"has \d+ empty buffers, \d+ promised and \d+ to be announced"),
    (add_credit_at_the_producer, r"has promised \d+ buffers; \d+ credits are on their way, \d+ with the producer, \d+"),
    (lose_a_buffer_on_the_way, r"has promised \d+ buffers; \d+ credits are on their way, \d+ with the producer, \d+"),
    (run_into_debt, "its producer has sent 2 buffers without credit"),
    (want_too_much, r"wants \d+ buffers: 2 are its own, \d+ wait"),
]


@pytest.mark.parametrize(("tamper", "said"), CREDIT, ids=[tamper.__name__ for tamper, _ in CREDIT])
def test_a_promise_is_on_its_way_at_the_producer_or_data_on_the_way_back(
    tamper: Callable[[Link, RemoteInputChannel], None], said: str
) -> None:
    simulation, link, channel = halfway()
    tamper(link, channel)
    with pytest.raises(AssertionError, match=said):
        simulation.check()


def test_a_channel_that_has_failed_or_gone_owes_nothing_any_more() -> None:
    simulation, link, channel = halfway()
    simulation.lose(NAME)
    channel.buffers.credit.num_promised += 1
    simulation.check()
    assert link.is_closed


def lose_an_exclusive_segment(channel: RemoteInputChannel) -> None:
    channel.buffers.exclusive.popleft()


def give_an_exclusive_segment_to_everybody(channel: RemoteInputChannel) -> None:
    channel.buffers._global_pool._free.append(channel.buffers.exclusive_buffers[0].segment)


def forget_what_was_received(channel: RemoteInputChannel) -> None:
    channel.received.pieces.popleft()


REMOTE_SEGMENTS = [
    (lose_an_exclusive_segment, r"nobody holds segment \d+"),
    (give_an_exclusive_segment_to_everybody, r"segment \d+ is with the global pool and with .* \(exclusive\)"),
    (forget_what_was_received, r"segment \d+ of .*: its buffer counts 1 references, 0 holders can be found"),
]


@pytest.mark.parametrize(("tamper", "said"), REMOTE_SEGMENTS, ids=[tamper.__name__ for tamper, _ in REMOTE_SEGMENTS])
def test_the_buffers_of_a_channel_are_in_one_place_too(tamper: Callable[[RemoteInputChannel], None], said: str) -> None:
    simulation, _, channel = halfway()
    while not (channel.buffers.exclusive and channel.received.pieces):
        simulation.step()
    tamper(channel)
    with pytest.raises(AssertionError, match=said):
        check_segments(simulation.deployments[1])


def test_a_buffer_that_is_half_received_is_with_the_decoder() -> None:
    simulation, link, _ = halfway()
    frame = encode(link.messages(Way.RESPONSES)[0], link.consumer._config.flink_version)
    link.consumer.receive_data(frame[:-1])
    assert link.consumer.decoder.held_buffer is not None
    check_all(*simulation.deployments)
    link.consumer.decoder._buffer = None
    with pytest.raises(AssertionError, match="1 references, 0 holders can be found"):
        check_all(*simulation.deployments)


def test_a_pool_may_have_more_than_its_share_only_after_the_shares_were_dealt_anew() -> None:
    """Exclusive buffers that come home can make the share of another pool smaller; what it has out drains."""
    simulation, _, channel = halfway()
    here = simulation.deployments[1]
    pool = here.shuffle.gate_pools[0]
    while pool.num_requested < pool.num_max:
        assert pool.request_buffer() is not None
    pool.size = pool.num_max - 1
    with pytest.raises(AssertionError, match=r"sink-0 \(floating\) has 3 segments, its share is 2, its limit 2"):
        check_memory(here)
    channel.release()
    pool.size = pool.num_max - 1
    check_memory(here)
    pool.num_requested = pool.num_max + 1
    with pytest.raises(AssertionError, match="has 4 segments, its share is 2, its limit 3"):
        check_memory(here)


A, B, C = (bytes([number]) * 16 for number in (10, 11, 12))


def said(*waiting: bytes, **numbers: int) -> dict[bytes, ReaderSnapshot]:
    """Readers that have sent so much; those in `waiting` stand in the line."""
    names = {"a": A, "b": B, "c": C}
    return {
        names[name]: ReaderSnapshot(names[name], 1, names[name] in waiting, number - 1)
        for name, number in numbers.items()
    }


def test_whoever_may_speak_stands_in_the_line() -> None:
    with pytest.raises(AssertionError, match=f"{B.hex()} may speak and is not in the line"):
        FairnessLaw().check(said(A, a=0, b=0), [A, B])


def test_nobody_speaks_twice_before_one_who_waits() -> None:
    law = FairnessLaw()
    law.check(said(A, B, a=0, b=0), [A, B])
    law.check(said(A, B, a=1, b=0), [A, B])
    with pytest.raises(AssertionError, match=f"{A.hex()} spoke twice while {B.hex()} waited"):
        law.check(said(A, B, a=2, b=0), [A, B])


def test_the_first_turn_of_one_who_joins_counts() -> None:
    law = FairnessLaw()
    law.check(said(A, a=0), [A])
    law.check(said(A, C, a=0, c=1), [A, C])
    with pytest.raises(AssertionError, match=f"{C.hex()} spoke twice while {A.hex()} waited"):
        law.check(said(A, C, a=0, c=2), [A, C])


def test_a_wait_begins_anew_after_a_turn_and_with_new_data() -> None:
    law = FairnessLaw()
    law.check(said(A, B, a=0, b=0), [A, B])
    law.check(said(A, B, a=1, b=0), [A, B])
    law.check(said(A, B, a=1, b=1), [A, B])  # B had its turn
    law.check(said(A, B, a=2, b=1), [A, B])
    law.check(said(A, a=2, b=2), [A])  # and now it has nothing to say
    law.check(said(A, a=3, b=2), [A])
    law.check(said(A, B, a=4, b=2), [A, B])
    law.check(said(A, B, C, a=5, b=2, c=0), [A, B, C])  # one that joins stands at the end
    law.check(said(A, B, C, a=5, b=3, c=0), [A, B, C])
    law.check(said(A, B, C, a=6, b=3, c=0), [A, B, C])
    with pytest.raises(AssertionError, match=f"{B.hex()} spoke twice while {C.hex()} waited"):
        law.check(said(A, B, C, a=6, b=4, c=0), [A, B, C])


def test_a_channel_that_has_more_than_it_wants_takes_no_more() -> None:
    simulation, link, channel = halfway()
    pool = simulation.deployments[1].shuffle.gate_pools[channel is simulation.deployments[1].gates[1].channels[0]]
    before = len(channel.buffers.empty_buffers)
    channel.buffers.credit.num_required = before
    link.check_step()
    channel.buffers.floating.append(pool.request_buffer())
    with pytest.raises(AssertionError, match=f"needs {before} empty buffers at most, it has {before + 1}"):
        link.check_step()


def test_at_the_end_both_ends_of_every_connection_know_that_it_is_over() -> None:
    simulation, link, _ = halfway()
    with pytest.raises(AssertionError, match=f"{NAME}, .* was left open"):
        link.check_end()
    simulation.lose(NAME)
    link.check_end()
