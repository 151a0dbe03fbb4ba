"""The simulation's wire: what is on its way arrives in order, after its delay, unless the wire is cut."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from refimpl.config import Config, FlinkVersion
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import AskAgain, Deliver, Send
from refimpl.drivers.simulation.wire import CAPACITY, Link, Way
from refimpl.errors import LocalUsageError, PartitionNotFoundError, RemoteTransportError
from refimpl.exchange import AddCredit, BufferResponse, CloseRequest, ErrorResponse, PartitionRequest
from refimpl.job import StreamEnvironment
from refimpl.records import LONG
from refimpl.task import IterableReader
from tests.support.driver_rig import hide_partitions

NAME = "tm-1 reads tm-0"
CONFIG = Config(segment_size_bytes=26, num_buffers=40, source_batch=2, buffers_per_channel=2)  # 2 records a buffer


def far(num_records: int = 8, width: int = 1, config: Config = CONFIG, **options: object) -> Simulation:
    """`width` sources on tm-0, as many sinks on tm-1, each reading one of them; two records fill a buffer."""
    environment = StreamEnvironment(config, parallelism=width)
    source = environment.source(lambda _i, _n: IterableReader(range(num_records)), type=LONG)
    source.forward().sink(print_nothing).slot_sharing_group("far")
    return Simulation(environment, num_task_managers=2, **options)


def print_nothing(_value: object) -> None: ...


def emit_all(simulation: Simulation) -> None:
    """Let the sources write until they have no buffer left."""
    while ready := [action for action in simulation.enabled() if str(action).startswith("step source")]:
        simulation.step(ready[0])


def asked(simulation: Simulation) -> Link:
    """The link, after the sinks' requests have arrived."""
    link = simulation.links[NAME]
    link.send(Way.REQUESTS, 0.0)
    link.deliver(Way.REQUESTS)
    return link


def numbers(link: Link) -> list[int]:
    """The sequence numbers of what is on its way to the consumer."""
    return [message.sequence_number for message in link.messages(Way.RESPONSES) if isinstance(message, BufferResponse)]


# -- which there are -------------------------------------------------------------------------------


def test_a_link_leads_from_each_task_manager_to_each_that_it_reads_from() -> None:
    environment = StreamEnvironment(CONFIG, parallelism=3)
    environment.source(lambda _i, _n: IterableReader([])).rebalance().sink(print_nothing).set_parallelism(2)
    with Simulation(environment, num_task_managers=3) as simulation:
        assert set(simulation.links) == {
            "tm-0 reads tm-1",
            "tm-0 reads tm-2",
            "tm-1 reads tm-0",
            "tm-1 reads tm-2",
        }
    with Simulation(environment) as simulation:
        assert simulation.links == {}


def test_all_channels_between_two_task_managers_share_a_link() -> None:
    with far(width=3) as simulation:
        assert list(simulation.links) == [NAME]
        link = asked(simulation)
        assert len(link.producer.snapshot().readers) == 3


# -- sending and arriving --------------------------------------------------------------------------


def test_requests_leave_together_and_responses_one_by_one() -> None:
    with far(width=3) as simulation:
        link = simulation.links[NAME]
        assert not link.can_send(Way.RESPONSES)
        assert link.can_send(Way.REQUESTS)
        link.send(Way.REQUESTS, 1.0)
        assert [type(message) for message in link.messages(Way.REQUESTS)] == [PartitionRequest] * 3
        assert not link.can_send(Way.REQUESTS)
        link.deliver(Way.REQUESTS)
        emit_all(simulation)
        link.send(Way.RESPONSES, 1.0)
        assert len(link.messages(Way.RESPONSES)) == 1


def test_what_was_sent_later_never_arrives_earlier() -> None:
    with far(config=replace(CONFIG, buffers_per_channel=3)) as simulation:
        link = asked(simulation)
        emit_all(simulation)
        for arrival_ms in (5.0, 1.0, 9.0):
            link.send(Way.RESPONSES, arrival_ms)
        assert numbers(link) == [0, 1, 2]
        arrivals = []
        while (arrival := link.next_arrival_ms(Way.RESPONSES)) is not None:
            arrivals.append(arrival)
            link.deliver(Way.RESPONSES)
        assert arrivals == [5.0, 5.0, 9.0]


def test_nothing_arrives_before_its_delay_has_passed_while_anything_else_can_move() -> None:
    with far(max_delay_ms=1_000.0, seed=3) as simulation:
        simulation.step(Send(NAME, Way.REQUESTS))
        arrival = simulation.links[NAME].next_arrival_ms(Way.REQUESTS)
        assert arrival is not None
        assert arrival > 1.0
        deliver = Deliver(NAME, Way.REQUESTS, arrival)
        while simulation.enabled() != [deliver]:
            assert deliver not in simulation.enabled()
            simulation.step()
        assert simulation.time_ms < arrival
        simulation.step(deliver)
        assert simulation.time_ms == arrival


def test_delays_follow_from_the_seed() -> None:
    def steps(seed: int) -> list[str]:
        with far(max_delay_ms=1.0, seed=seed, policy="first") as simulation:
            return [str(simulation.step()) for _ in range(20)]

    assert steps(1) == steps(1) != steps(2)


def test_a_wire_holds_so_much_and_the_rest_waits_where_backpressure_sees_it() -> None:
    config = replace(CONFIG, num_buffers=80, buffers_per_channel=12)
    with far(num_records=40, config=config) as simulation:
        link = asked(simulation)
        emit_all(simulation)
        while link.can_send(Way.RESPONSES):
            link.send(Way.RESPONSES, 0.0)
        assert numbers(link) == list(range(CAPACITY))
        [queue] = simulation.deployments[0].partitions[0].subpartitions
        assert queue.num_queued > 1  # the producer could say more: it has data and credit for 12
        link.deliver(Way.RESPONSES)
        assert link.can_send(Way.RESPONSES)


def test_what_is_on_its_way_can_be_looked_at() -> None:
    with far() as simulation:
        link = asked(simulation)
        emit_all(simulation)
        link.send(Way.RESPONSES, 1.0)
        [response] = link.messages(Way.RESPONSES)
        assert (response.sequence_number, len(response.payload)) == (0, 26)
        assert repr(link) == f"Link({NAME}, 0 requests, 1 responses on the way)"
        link.deliver(Way.RESPONSES)
        link.send(Way.REQUESTS, 1.0)
        [message] = link.messages(Way.REQUESTS)
        # Room for all that waits, and for one more in the place of the exclusive buffer that was used.
        assert message == AddCredit(response.backlog + 1, response.receiver)


@pytest.mark.parametrize("version", FlinkVersion)
def test_after_the_last_channel_the_link_is_closed_at_both_ends(version: FlinkVersion) -> None:
    with far(config=replace(CONFIG, flink_version=version), max_delay_ms=0.1) as simulation:
        link = simulation.links[NAME]
        while not simulation.is_done:
            assert not link.is_closed
            simulation.step()
        assert link.consumer.unsent_messages == ()
        link.send(Way.REQUESTS, 0.0)
        assert link.messages(Way.REQUESTS) == [CloseRequest()]
        assert not link.is_closed
        link.deliver(Way.REQUESTS)
        assert link.is_closed
        link.check_end()


# -- accidents -------------------------------------------------------------------------------------


def test_a_lost_wire_loses_what_was_on_it_and_tells_both_ends() -> None:
    with far(width=2) as simulation:
        link = asked(simulation)
        emit_all(simulation)
        link.send(Way.RESPONSES, 1.0)
        simulation.lose(NAME)
        assert [link.next_arrival_ms(way) for way in Way] == [None, None]
        assert not any(link.can_send(way) for way in Way)
        assert link.is_closed
        assert link.producer.snapshot().readers == {}
        said = rf"^{NAME}: Connection unexpectedly closed by remote task manager \(the simulated wire was cut\)\. This"
        for channel in simulation.deployments[1].shuffle.remote_channels:
            assert channel.error is link.consumer.error
            with pytest.raises(RemoteTransportError, match=said):
                channel.poll()


def test_a_wire_is_lost_once_and_not_after_its_end() -> None:
    with far() as simulation:
        simulation.lose(NAME)
        first = simulation.links[NAME].consumer.error
        simulation.lose(NAME)
        assert simulation.links[NAME].consumer.error is first
    with far() as simulation:
        simulation.run()
        simulation.lose(NAME)
        assert simulation.links[NAME].consumer.error is None


def test_a_wire_that_is_not_there_cannot_be_lost() -> None:
    said = rf"no link 'tm-0 reads tm-1'; there are \['{NAME}'\]"
    with far() as simulation, pytest.raises(LocalUsageError, match=said):
        simulation.lose("tm-0 reads tm-1")


def test_bytes_that_no_consumer_sends_end_the_connection_and_the_consumer_is_told_why() -> None:
    with far() as simulation:
        link = simulation.links[NAME]
        link.consumer._outbox.append(ErrorResponse(b"not from a consumer"))
        link.send(Way.REQUESTS, 0.0)
        link.deliver(Way.REQUESTS)
        assert link.producer.is_closed
        link.send(Way.RESPONSES, 0.0)
        link.deliver(Way.RESPONSES)
        with pytest.raises(RemoteTransportError, match=r"Fatal error at remote .* unknown message .*: id 1,"):
            simulation.run()


# -- a partition that is not there yet ---------------------------------------------------------------


def test_a_partition_that_was_not_there_is_asked_for_again_and_the_laws_hold_meanwhile() -> None:
    with far() as simulation:
        known = simulation.deployments[0].shuffle._partition_by_id
        hidden = dict(known)
        known.clear()
        waits = []
        while len(waits) < 3:
            action = simulation.step()
            if isinstance(action, AskAgain):
                waits.append(action.time_ms)
        assert waits[0] == pytest.approx(100.0, abs=1.0)  # request_backoff_initial_ms, then twice as long each time
        assert [later - earlier for earlier, later in pairwise(waits)] == [
            pytest.approx(200.0, abs=1.0),
            pytest.approx(400.0, abs=1.0),
        ]
        known.update(hidden)
        simulation.run()
        assert simulation.is_done


def test_a_partition_that_never_comes_fails_its_reader() -> None:
    with far() as simulation:
        hide_partitions(simulation.deployments[0])
        with pytest.raises(PartitionNotFoundError, match="not found, asked 9 times"):
            simulation.run(max_steps=2_000)
    assert [each.pool.num_free for each in simulation.deployments] == [40, 40]
