"""The laws of `refimpl.laws` on several TaskManagers: with delays, with a lost connection, and broken on purpose.

What `test_laws.py` does for one TaskManager, plus what lies between them. Everything about a run follows from its seed,
which is the name of the test: `pytest tests/test_remote_laws.py -k 'delays and [17]'` repeats it. No TaskManager has a
buffer more than it needs to start, so everything blocks that can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pytest

from refimpl.config import FlinkVersion
from refimpl.consumer import BufferManager, RemoteInputChannel
from refimpl.drivers import Simulation
from refimpl.drivers.simulation.wire import Way
from refimpl.errors import RemoteProtocolError, RemoteTransportError, SluiceError
from refimpl.exchange import (
    AddCredit,
    ConsumerConnection,
    ConsumerCredit,
    FrameDecoder,
    LentBuffers,
    Message,
    PartitionReader,
    PartitionRequestQueue,
    ProducerConnection,
    SubpartitionReader,
    encode,
)
from refimpl.invariants import check_all
from refimpl.job import ConnectionId, ExecutionGraph, ShuffleEnvironment, StreamEnvironment
from refimpl.memory import Buffer
from refimpl.records import StreamRecord
from refimpl.task import IterableReader, Operator
from tests.support.random_jobs import OPERATORS, ROUTES, Every, Shape, check

DELAYS_MS = (0.0, 0.05, 1.0, 1e6)  # none, a few steps, many steps, longer than everything else together
Item = TypeVar("Item")


def one_of(random: np.random.Generator, items: Sequence[Item]) -> Item:
    return items[int(random.integers(len(items)))]


def flip(random: np.random.Generator, chance: float = 0.5) -> bool:
    return bool(random.random() < chance)


# -- delays ----------------------------------------------------------------------------------------


def drawn(seed: int) -> Shape:
    """A job on 1 to 3 TaskManagers, as far as it has slots for them; each option with every other."""
    random = np.random.default_rng(seed)
    stages = tuple(
        (one_of(random, ROUTES), one_of(random, sorted(OPERATORS)), int(random.integers(1, 4)))
        for _ in range(random.integers(1, 4))
    )
    shape = Shape(
        num_records=int(random.integers(0, 15)),
        source_parallelism=int(random.integers(1, 4)),
        stages=stages,
        segment=one_of(random, (3, 16, 30, 64)),
        timeout=one_of(random, (-1, 0, 1, 100)),
        policy=one_of(random, ("random", "round_robin", "first")),
        seed=seed,
        object_reuse=flip(random),
        chaining=flip(random),
        is_fixed_size=flip(random),
        spare_buffers=0,
        max_per_channel=one_of(random, (1, 10)),
        overdraft=one_of(random, (0, 2)),
        version=one_of(random, list(FlinkVersion)),
        max_delay_ms=one_of(random, DELAYS_MS),
        exclusive=int(random.integers(1, 3)),
        floating=int(random.integers(0, 3)),
        is_union=flip(random, 0.3),
        is_spread=flip(random),
    )
    while len(shape.build(shape.environment(), [])) > 40:  # broadcasts multiply
        shape = replace(shape, num_records=shape.num_records // 2)
    shape = replace(shape, num_task_managers=min(int(random.integers(1, 4)), shape.num_slots()))
    return replace(shape, has_credit=flip(random))


@pytest.mark.slow  # each seed takes a tenth of a second, but there are hundreds
@pytest.mark.sampled(one_in=11)
@pytest.mark.parametrize("seed", range(300))
def test_with_any_delays_the_laws_hold_and_the_answer_is_right(seed: int) -> None:
    simulation = check(drawn(seed))
    assert all(link.is_closed for link in simulation.links.values())


@pytest.mark.slow
def test_the_seeds_above_try_every_option_and_most_of_them_a_wire() -> None:
    shapes = [drawn(seed) for seed in range(300)]
    for version in FlinkVersion:
        for width in (1, 2, 3):
            assert {shape.policy for shape in shapes if (shape.version, shape.num_task_managers) == (version, width)}
    far = [shape for shape in shapes if shape.num_task_managers > 1]
    assert len(far) >= 150
    assert len([shape for shape in far if not shape.has_credit]) >= 20


# -- a lost connection -----------------------------------------------------------------------------


class Trail(Operator):
    """Adds the subtask it runs in to each value, so that a sink knows which way every record came."""

    def process(self, record: StreamRecord) -> None:
        self.output.collect(StreamRecord((*record.value, self.context.subtask)))


class Trails:
    """A job in which all records of one source, key and trail go one way, so that their order is known.

    A value is (source, key, number, padding, and a subtask for each stage it has passed).
    """

    NUM_RECORDS = 9  # of each source

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.num_sources = int(random.integers(1, 4))
        self.padding = [one_of(random, ("", "x", "x" * 40)) for _ in range(self.NUM_RECORDS)]
        self.stages = [(one_of(random, ("key_by", "broadcast")), int(random.integers(1, 4)))]
        if flip(random):
            self.stages.append((one_of(random, ("key_by", "broadcast", "forward")), int(random.integers(1, 3))))
        self.options = replace(drawn(seed), segment=one_of(random, (16, 40, 100)))
        num_slots = self._graph(1).placement.num_slots
        self.num_task_managers = min(int(random.integers(2, 4)), num_slots)
        self.options = replace(self.options, has_credit=flip(random))
        self.num_buffers = self._graph(self.num_task_managers).num_required_buffers

    def build(self, environment: StreamEnvironment, results: list[tuple]) -> None:
        def reader(subtask: int, _parallelism: int) -> IterableReader:
            return IterableReader((subtask, number % 3, number, padding) for number, padding in enumerate(self.padding))

        stream, width = environment.source(reader, parallelism=self.num_sources), self.num_sources
        for number, (route, parallelism) in enumerate(self.stages):
            width = width if route == "forward" else parallelism
            routed = stream.key_by(lambda value: value[1]) if route == "key_by" else getattr(stream, route)()
            stream = routed.transform(f"stage-{number}", Trail).set_parallelism(width)
            stream.slot_sharing_group(f"stage-{number}")
        stream.sink(results.append).set_parallelism(width)

    def simulation(self, results: list[tuple]) -> Simulation:
        environment = self.options.environment(self.num_buffers)
        self.build(environment, results)
        return Simulation(
            environment,
            self.options.seed,
            self.options.policy,
            num_task_managers=self.num_task_managers,
            max_delay_ms=self.options.max_delay_ms,
        )

    def check(self, results: list[tuple]) -> None:
        """What each way brought is the beginning of what was sent: nothing twice, no gap, in order."""
        brought: dict[tuple, list[tuple[int, str]]] = defaultdict(list)
        for source, key, number, padding, *trail in results:
            brought[source, key, *trail].append((number, padding))
        for way, records in brought.items():
            sent = [(number, padding) for number, padding in enumerate(self.padding) if number % 3 == way[1]]
            assert records == sent[: len(records)], way

    @property
    def num_results(self) -> int:
        """How many there are when nothing is lost."""
        copies = 1
        for route, parallelism in self.stages:
            copies *= parallelism if route == "broadcast" else 1
        return copies * self.num_sources * self.NUM_RECORDS

    def _graph(self, num_task_managers: int) -> ExecutionGraph:
        environment = self.options.environment()
        self.build(environment, [])
        return environment.execution_graph(num_task_managers)


def channels_by_link(simulation: Simulation) -> dict[str, list[RemoteInputChannel]]:
    return {
        f"tm-{consumer.task_manager} reads {connection_id}": [read.channel for read in reads]
        for consumer in simulation.deployments
        for connection_id, reads in consumer.shuffle.remote_reads.items()
    }


def cut(simulation: Simulation, name: str, random: np.random.Generator) -> None:
    """Cut a connection: between two frames, in the middle of one that arrives, or while one is being written."""
    link = simulation.links[name]
    accident = one_of(random, ("between", "arriving", "writing"))
    if accident == "arriving" and link.consumer.pause is None and (responses := link.messages(Way.RESPONSES)):
        frame = encode(responses[0], simulation.deployment.config.flink_version)
        link.consumer.receive_data(frame[: random.integers(len(frame))])
    if accident == "writing":
        link.producer.data_to_send(int(random.integers(1, 100)))  # lent, and never written
    check_all(*simulation.deployments)
    simulation.lose(name)


def lose_a_connection(seed: int) -> None:
    """Run a job for a while, cut a connection, and see that what reads from it fails, and nothing else."""
    job, random = Trails(seed), np.random.default_rng((seed, 1))
    results: list[tuple] = []
    with job.simulation(results) as simulation:
        channels = channels_by_link(simulation)
        simulation.run(max_steps=int(random.integers(1, 250)))
        name = one_of(random, [name for name, link in simulation.links.items() if not link.is_closed] or [*channels])
        link = simulation.links[name]
        failing = [channel for channel in channels[name] if not channel.is_released]
        cut(simulation, name, random)

        def only_these_have_failed(simulation: Simulation) -> None:
            failed = [channel for each in channels.values() for channel in each if channel.error is not None]
            assert failed == failing, f"seed {seed}, {simulation.num_steps} steps"
            assert {channel.error for channel in failed} <= {link.consumer.error}

        only_these_have_failed(simulation)
        simulation.check()
        if failing:
            said = rf"^{name}: Connection unexpectedly closed .*\(the simulated wire was cut\)"
            with pytest.raises(RemoteTransportError, match=said) as caught:
                simulation.run(on_step=only_these_have_failed)
            assert caught.value is link.consumer.error
        else:  # all has been read from it: the job ends well
            simulation.run(on_step=only_these_have_failed)
            assert len(results) == job.num_results
        only_these_have_failed(simulation)
    job.check(results)
    assert [each.pool.num_free for each in simulation.deployments] == [job.num_buffers] * job.num_task_managers


@pytest.mark.slow
@pytest.mark.sampled(one_in=11)
@pytest.mark.parametrize("seed", range(360))
def test_a_lost_connection_fails_what_reads_from_it_and_nothing_else(seed: int) -> None:
    lose_a_connection(seed)


@pytest.mark.slow
def test_without_a_loss_every_trail_comes_to_its_end() -> None:
    for seed in range(5):
        job, results = Trails(seed), []
        with job.simulation(results) as simulation:
            simulation.run()
        job.check(results)
        assert len(results) == job.num_results, f"seed {seed}"


# -- engines broken on purpose ---------------------------------------------------------------------

FAR = Shape(
    num_records=24,
    source_parallelism=2,
    stages=(("rebalance", "map", 2), ("key_by", "explode", 2)),
    segment=16,
    timeout=-1,
    policy="random",
    seed=2,
    object_reuse=False,
    chaining=True,
    is_fixed_size=False,
    spare_buffers=2,
    max_per_channel=10,
    overdraft=0,
    num_task_managers=2,
    max_delay_ms=0.05,
    is_spread=True,
)


def announce_credit_twice(patch: pytest.MonkeyPatch) -> None:
    strikes, announce = Every(5), ConsumerCredit.announce

    def mutant(self: ConsumerCredit) -> int:
        announced = announce(self)
        if strikes():
            self.num_unannounced = announced
        return announced

    patch.setattr(ConsumerCredit, "announce", mutant)


def lose_an_announcement(patch: pytest.MonkeyPatch) -> None:
    strikes, news_of = Every(5), ConsumerConnection._news_of

    def mutant(self: ConsumerConnection, reader: PartitionReader) -> list[Message]:
        return [message for message in news_of(self, reader) if not (isinstance(message, AddCredit) and strikes())]

    patch.setattr(ConsumerConnection, "_news_of", mutant)


def add_credit_twice(patch: pytest.MonkeyPatch) -> None:
    strikes, handle = Every(5), ProducerConnection._handle

    def mutant(self: ProducerConnection, message: Message) -> None:
        handle(self, message)
        if isinstance(message, AddCredit) and strikes():
            handle(self, message)

    patch.setattr(ProducerConnection, "_handle", mutant)


def ignore_credit(patch: pytest.MonkeyPatch) -> None:
    strikes, handle = Every(5), ProducerConnection._handle

    def mutant(self: ProducerConnection, message: Message) -> None:
        if not (isinstance(message, AddCredit) and strikes()):
            handle(self, message)

    patch.setattr(ProducerConnection, "_handle", mutant)


def charge_for_events(patch: pytest.MonkeyPatch) -> None:
    poll = SubpartitionReader.poll

    def mutant(self: SubpartitionReader) -> object:
        turn = poll(self)
        if turn is not None and not turn[0].buffer.is_buffer and self.credit:
            self.credit -= 1
        return turn

    patch.setattr(SubpartitionReader, "poll", mutant)


def send_for_nothing(patch: pytest.MonkeyPatch) -> None:
    strikes, poll = Every(9), SubpartitionReader.poll

    def mutant(self: SubpartitionReader) -> object:
        turn = poll(self)
        if turn is not None and turn[0].buffer.is_buffer and strikes():
            self.credit += 1
        return turn

    patch.setattr(SubpartitionReader, "poll", mutant)


def serve_without_credit(patch: pytest.MonkeyPatch) -> None:
    """A producer that runs into debt, and does not notice."""

    def mutant(self: SubpartitionReader) -> object:
        taken = self.view.poll()
        if taken is None:
            return None
        self.sequence_number += 1
        self.credit -= taken.buffer.is_buffer
        return taken, taken.is_more_available

    patch.setattr(SubpartitionReader, "poll", mutant)
    patch.setattr(SubpartitionReader, "is_available", property(lambda self: self.view.is_data_available))


def skip_a_sequence_number(patch: pytest.MonkeyPatch) -> None:
    strikes, poll = Every(9), SubpartitionReader.poll

    def mutant(self: SubpartitionReader) -> object:
        self.sequence_number += strikes()
        return poll(self)

    patch.setattr(SubpartitionReader, "poll", mutant)


def let_one_reader_speak_first(patch: pytest.MonkeyPatch) -> None:
    def mutant(self: PartitionRequestQueue, reader: SubpartitionReader) -> None:
        reader.is_enqueued = True
        self._line.appendleft(reader)

    patch.setattr(PartitionRequestQueue, "_stand_in_line", mutant)


def forget_who_has_credit_again(patch: pytest.MonkeyPatch) -> None:
    strikes, enqueue = Every(5), PartitionRequestQueue.enqueue
    patch.setattr(PartitionRequestQueue, "enqueue", lambda self, reader: None if strikes() else enqueue(self, reader))


def keep_what_was_written(patch: pytest.MonkeyPatch) -> None:
    strikes, confirm = Every(9), LentBuffers.confirm

    def mutant(self: LentBuffers, num_bytes: int) -> None:
        if self._lent and strikes():
            self._lent.popleft()
        confirm(self, num_bytes)

    patch.setattr(LentBuffers, "confirm", mutant)


def never_say_that_it_was_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerConnection, "data_sent", lambda self, num_bytes=None: None)


def add_to_the_backlog(patch: pytest.MonkeyPatch) -> None:
    on_backlog = BufferManager.on_backlog

    def mutant(self: BufferManager, backlog: int) -> None:
        on_backlog(self, max(self.credit.num_required - self.credit.num_exclusive, 0) + backlog)

    patch.setattr(BufferManager, "on_backlog", mutant)


def use_a_buffer_and_keep_the_promise(patch: pytest.MonkeyPatch) -> None:
    strikes, use = Every(9), ConsumerCredit.use
    patch.setattr(ConsumerCredit, "use", lambda self: None if strikes() else use(self))


def forget_a_buffer_that_came_home(patch: pytest.MonkeyPatch) -> None:
    strikes, add = Every(5), BufferManager.add_credit
    patch.setattr(BufferManager, "add_credit", lambda self, num: None if strikes() else add(self, num))


def hoard_floating_buffers(patch: pytest.MonkeyPatch) -> None:
    """None of them goes back when an exclusive one comes home."""

    patch.setattr(BufferManager, "on_recycled", lambda self: self.add_credit(1))


def keep_exclusive_buffers_on_release(patch: pytest.MonkeyPatch) -> None:
    release = BufferManager.release

    def mutant(self: BufferManager, received: Iterable[Buffer]) -> None:
        self.exclusive.clear()
        release(self, received)

    patch.setattr(BufferManager, "release", mutant)


def leave_without_a_word(patch: pytest.MonkeyPatch) -> None:
    """A released channel does not tell its connection, so the producer is never told."""
    release = RemoteInputChannel.release

    def mutant(self: RemoteInputChannel) -> None:
        self.on_message = lambda: None
        release(self)

    patch.setattr(RemoteInputChannel, "release", mutant)


def forget_to_say_that_data_has_come(patch: pytest.MonkeyPatch) -> None:
    strikes, tell = Every(5), RemoteInputChannel._tell_gate
    patch.setattr(RemoteInputChannel, "_tell_gate", lambda self: None if strikes() else tell(self))


MUTANTS = [
    announce_credit_twice, lose_an_announcement, add_credit_twice, ignore_credit, charge_for_events, send_for_nothing,
    serve_without_credit, skip_a_sequence_number, let_one_reader_speak_first, forget_who_has_credit_again,
    keep_what_was_written, never_say_that_it_was_written, add_to_the_backlog, use_a_buffer_and_keep_the_promise,
    forget_a_buffer_that_came_home, hoard_floating_buffers, keep_exclusive_buffers_on_release, leave_without_a_word,
    forget_to_say_that_data_has_come,
]  # fmt: skip

CAUGHT_BY_USE = {skip_a_sequence_number}  # the law of order is asserted by the end that receives


def run_far() -> Simulation:
    """The job every mutant runs."""
    environment = FAR.environment(FAR.num_required() + FAR.spare_buffers)
    FAR.build(environment, [])
    with Simulation(
        environment, FAR.seed, FAR.policy, num_task_managers=FAR.num_task_managers, max_delay_ms=FAR.max_delay_ms
    ) as simulation:
        simulation.run(max_steps=5_000)
        if not simulation.is_done:  # no AssertionError: an endless job has broken no law
            pytest.fail("5000 steps and no end")
    return simulation


def test_the_unchanged_engine_passes_where_the_mutants_must_fail() -> None:
    assert run_far().is_done


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_a_broken_engine_breaks_a_law(mutate: Callable[[pytest.MonkeyPatch], None]) -> None:
    """No result is compared here: the laws must notice."""
    with pytest.MonkeyPatch.context() as patch:
        mutate(patch)
        with pytest.raises(RemoteProtocolError if mutate in CAUGHT_BY_USE else AssertionError) as caught:
            run_far()
    assert str(caught.value)


# -- engines that fall badly -----------------------------------------------------------------------


def keep_floating_buffers_on_release(patch: pytest.MonkeyPatch) -> None:
    release = BufferManager.release

    def mutant(self: BufferManager, received: Iterable[Buffer]) -> None:
        self.floating.clear()
        release(self, received)

    patch.setattr(BufferManager, "release", mutant)


def keep_what_had_been_received(patch: pytest.MonkeyPatch) -> None:
    release = BufferManager.release
    patch.setattr(BufferManager, "release", lambda self, _received: release(self, []))


def keep_a_half_received_buffer(patch: pytest.MonkeyPatch) -> None:
    close = FrameDecoder.close

    def mutant(self: FrameDecoder) -> None:
        self._buffer = None
        close(self)

    patch.setattr(FrameDecoder, "close", mutant)


def keep_what_was_being_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerConnection, "connection_lost", ProducerConnection._close)


def fail_one_channel_only(patch: pytest.MonkeyPatch) -> None:
    """The others wait for ever for what will not come."""
    fail = ConsumerConnection._fail

    def mutant(self: ConsumerConnection, error: SluiceError) -> None:
        self.readers = dict([*self.readers.items()][:1])
        fail(self, error)

    patch.setattr(ConsumerConnection, "_fail", mutant)


def fail_the_neighbours_too(patch: pytest.MonkeyPatch) -> None:
    """As if one connection's trouble were that of all."""
    fail, all_of_them = ConsumerConnection._fail, ShuffleEnvironment.connect
    known: list[ConsumerConnection] = []

    def mutant(self: ConsumerConnection, error: SluiceError) -> None:
        for connection in known:
            fail(connection, error)

    def connect(self: ShuffleEnvironment, connection_id: ConnectionId, name: str) -> ConsumerConnection:
        known.append(all_of_them(self, connection_id, name))
        return known[-1]

    patch.setattr(ConsumerConnection, "_fail", mutant)
    patch.setattr(ShuffleEnvironment, "connect", connect)


def keep_the_cause_to_itself(patch: pytest.MonkeyPatch) -> None:
    receive_end = ConsumerConnection.receive_end
    patch.setattr(ConsumerConnection, "receive_end", lambda self, cause="": receive_end(self))


BAD_FALLS = [
    keep_floating_buffers_on_release, keep_what_had_been_received, keep_a_half_received_buffer,
    keep_what_was_being_written, fail_one_channel_only, fail_the_neighbours_too, keep_the_cause_to_itself,
]  # fmt: skip


def lose_connections(num_seeds: int) -> None:
    for seed in range(num_seeds):
        lose_a_connection(seed)


@pytest.mark.slow
@pytest.mark.parametrize("mutate", BAD_FALLS, ids=lambda mutate: mutate.__name__)
def test_an_engine_that_falls_badly_is_noticed_within_a_few_losses(
    mutate: Callable[[pytest.MonkeyPatch], None],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        mutate(patch)
        with pytest.raises(AssertionError) as caught:
            lose_connections(40)
    assert str(caught.value)
