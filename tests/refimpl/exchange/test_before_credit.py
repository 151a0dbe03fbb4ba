"""The way before credits: one channel without room stops its connection, and everything goes on when it has some.

`Consumer` is one end, fed with frames; `World` is both ends and a wire that holds little, run in rounds or by a seeded
schedule.
"""

from __future__ import annotations

import pytest

from refimpl.config import Config
from refimpl.errors import LocalUsageError, PoolDestroyedError, RemoteProtocolError, RemoteTransportError
from refimpl.exchange import (
    AddCredit,
    CancelPartitionRequest,
    CloseRequest,
    ErrorResponse,
    PartitionRequest,
    ResumeConsumption,
    encode,
)
from refimpl.exchange.before_credit import WaterMarks
from refimpl.memory import LocalBufferPool
from refimpl.records import (
    CheckpointBarrier,
    EndOfPartition,
)
from tests.support.before_credit_rig import (
    CREDIT,
    FRAME,
    NO_CREDIT,
    SEGMENT,
    Consumer,
    Producer,
    Schedule,
    World,
    can_resume,
    data,
    event,
    is_reading,
    jammed,
)
from tests.support.consumer_rig import java_error, partition, receiver
from tests.support.raw_frames import frames_in

# -- the consumer's end: staging -------------------------------------------------------------------------------------


def test_data_without_a_buffer_stops_the_whole_connection() -> None:
    """The other gate has a buffer, and gets nothing.

    Flink: `PartitionRequestClientHandlerTest`.
    """
    consumer, _ = jammed()
    assert not can_resume(consumer.connection)
    assert consumer.gates[1].poll_next() is None
    assert not consumer.pools[1].lent


def test_a_buffer_that_comes_home_is_for_what_is_staged_and_the_others_follow_in_order() -> None:
    """Flink: `PartitionRequestClientHandlerTest#testReceiveBuffer` (P81)."""
    consumer, buffer = jammed()
    buffer.recycle()
    assert can_resume(consumer.connection)
    assert not is_reading(consumer.connection)  # not by itself: the driver has to say so
    consumer.connection.receive_data(b"")
    assert is_reading(consumer.connection)
    assert (consumer.read(0), consumer.read(1)) == (b"a1", b"b0")
    consumer.close()


def test_reading_resumes_only_up_to_the_next_data_without_a_buffer() -> None:
    consumer = Consumer(num_buffers=1)
    consumer.say(*(data(0, number, b"%d" % number) for number in range(4)))
    for number in range(3):
        assert consumer.read() == b"%d" % number
        consumer.connection.receive_data(b"")
        assert (is_reading(consumer.connection), can_resume(consumer.connection)) == (number == 2, False)
    assert consumer.read() == b"3"
    consumer.close()


def test_resuming_too_early_changes_nothing() -> None:
    consumer, buffer = jammed()
    for _ in range(3):
        consumer.connection.receive_data(b"")
    assert (is_reading(consumer.connection), consumer.gates[1].poll_next()) == (False, None)
    assert consumer.pools[0].snapshot().num_listeners == 1
    buffer.recycle()
    consumer.connection.receive_data(b"")
    assert (consumer.read(0), consumer.read(1)) == (b"a1", b"b0")
    consumer.connection.receive_data(b"")  # nothing is staged
    consumer.close()


def test_an_event_needs_no_buffer_but_waits_behind_what_does() -> None:
    consumer = Consumer(num_buffers=1)
    consumer.say(data(0, 0, b"a0"), event(0, 1, CheckpointBarrier(1, 0)), data(0, 2, b"a2"))
    assert not is_reading(consumer.connection)
    consumer.say(event(0, 3, EndOfPartition()))  # read too much, and kept
    assert consumer.read() == b"a0"
    assert consumer.polled() == CheckpointBarrier(1, 0)
    assert consumer.gates[0].poll_next() is None
    consumer.connection.receive_data(b"")
    assert consumer.read() == b"a2"
    assert (consumer.polled(), consumer.gates[0].is_finished) == (EndOfPartition(), True)
    consumer.close()


def test_an_empty_buffer_waits_for_nothing() -> None:
    consumer = Consumer(num_buffers=1)
    consumer.say(data(0, 0, b"a0"), data(0, 1, b""))
    assert is_reading(consumer.connection)
    consumer.say(data(0, 2, b"a2"))
    assert consumer.read() == b"a0"
    consumer.connection.receive_data(b"")
    assert consumer.read() == b"a2"
    consumer.close()


def test_however_the_transport_cuts_the_bytes_the_same_arrives() -> None:
    messages = [data(number % 3, number // 3, b"%02d" % number * (number % 8 + 1)) for number in range(30)]
    messages += [event(channel, 10, EndOfPartition()) for channel in range(3)]
    stream = b"".join(map(encode, messages))
    for piece_bytes in (*range(1, 60), len(stream)):
        consumer = Consumer(num_channels=3, num_buffers=1)
        arrived = []
        for start in range(0, len(stream), piece_bytes):
            piece = bytearray(stream[start : start + piece_bytes])
            consumer.connection.receive_data(piece)
            piece[:] = bytes(len(piece))  # a driver reads into the same memory again
            while not is_reading(consumer.connection):
                arrived.append(consumer.read())
                consumer.connection.receive_data(b"")
        arrived.append(consumer.read())
        assert arrived == [message.payload for message in messages[:30]], piece_bytes
        assert [consumer.polled() for _ in range(3)] == [EndOfPartition()] * 3
        consumer.close()


def test_a_piece_read_too_much_is_kept_behind_what_is_staged() -> None:
    consumer, buffer = jammed()
    whole = encode(data(1, 1, b"b1"))
    consumer.connection.receive_data(whole[:20])
    consumer.connection.receive_data(bytearray(whole[20:]))
    assert not is_reading(consumer.connection)
    buffer.recycle()
    consumer.connection.receive_data(b"")
    assert (consumer.read(0), consumer.read(1)) == (b"a1", b"b0")
    assert not is_reading(consumer.connection)  # b1 waits now: when it came, b0 had its gate's buffer
    consumer.connection.receive_data(b"")
    assert consumer.read(1) == b"b1"
    consumer.close()


def test_who_goes_on_reading_is_stopped_before_memory_is() -> None:
    consumer, buffer = jammed()
    limit = consumer.config.frame_limit_bytes
    with pytest.raises(LocalUsageError, match="read nothing from the transport"):
        consumer.connection.receive_data(bytes(limit))
    assert consumer.connection.error is None
    buffer.recycle()
    consumer.connection.receive_data(b"")
    assert (consumer.read(0), consumer.read(1)) == (b"a1", b"b0")
    consumer.close()


# -- the consumer's end: whose buffer it is ----------------------------------------------------------------------------


def test_the_buffer_of_a_wait_that_is_over_is_nobody_elses() -> None:
    """Two connections read for one gate: what comes home goes to who has waited longest, once."""
    first = Consumer(num_buffers=1)
    second = first.makers.consumer_connection(NO_CREDIT, "to tm-2")
    other = first.make_channel(1, 1, first.pools[0], [])
    other.open(lambda: None)
    second.request(other, partition(1), 0)
    first.say(data(0, 0, b"a0"), data(0, 1, b"a1"))
    second.receive_data(encode(data(1, 0, b"b0")))
    assert not is_reading(second)
    assert first.read() == b"a0"
    assert (can_resume(first.connection), can_resume(second)) == (True, False)
    assert len(first.channels[0].held_buffers) == 1
    second.receive_data(b"")
    assert not is_reading(second)
    first.connection.receive_data(b"")
    assert first.channels[0].held_buffers[0].data == b"a1"
    assert first.read() == b"a1"
    assert can_resume(second)
    second.receive_data(b"")
    other.release()
    first.close()


def test_a_wait_is_over_when_the_global_pool_has_a_segment_again() -> None:
    """Nobody recycles a buffer of this gate, since it has none."""
    consumer = Consumer(num_buffers=1)
    consumer.pools[0].destroy()
    greedy = LocalBufferPool(consumer.home, 0, 1, "another task")
    taken = greedy.request_buffer()
    pool = LocalBufferPool(consumer.home, 1, 1, "gate-1")
    channel = consumer.make_channel(1, 1, pool, [])
    channel.open(lambda: None)
    consumer.connection.request(channel, partition(1), 0)
    consumer.say(data(1, 0, b"b0"), data(1, 1, b"b1"))
    assert (pool.num_requested, can_resume(consumer.connection)) == (0, False)
    taken.recycle()
    assert can_resume(consumer.connection)
    consumer.connection.receive_data(b"")
    buffer = channel.poll().buffer
    assert (buffer.data, can_resume(consumer.connection)) == (b"b0", False)
    buffer.recycle()
    consumer.connection.receive_data(b"")
    channel.poll().buffer.recycle()
    assert pool.snapshot().num_in_use == 0
    pool.destroy()
    greedy.destroy()
    consumer.close()


def test_a_buffer_offered_to_who_does_not_wait_any_more_goes_to_the_next() -> None:
    consumer = Consumer(num_channels=2, num_buffers=1)
    consumer.say(data(0, 0, b"a0"), data(0, 1, b"a1"), data(1, 0, b"b0"))
    buffer = consumer.polled()
    consumer.channels[0].release()  # its place in the line is still there
    consumer.connection.receive_data(b"")  # skips a1; now b0 waits, behind that place
    assert not is_reading(consumer.connection)
    assert consumer.pools[0].snapshot().num_listeners == 2
    buffer.recycle()
    assert consumer.channels[0].held_buffers == []
    consumer.connection.receive_data(b"")
    assert consumer.read() == b"b0"
    consumer.close()


# -- the consumer's end: ends and errors -------------------------------------------------------------------------------


def test_a_released_channel_does_not_stop_the_others() -> None:
    consumer, buffer = jammed()
    consumer.gates[0].release()
    assert can_resume(consumer.connection)
    consumer.connection.receive_data(b"")
    assert is_reading(consumer.connection)
    assert consumer.read(1) == b"b0"
    assert consumer.sent() == [CancelPartitionRequest(receiver(0))]
    consumer.say(data(0, 2, b"late"), data(1, 1, b"b1"))
    assert consumer.read(1) == b"b1"
    buffer.recycle()
    consumer.close()


def test_a_released_channel_gives_up_the_buffer_that_came_for_what_is_staged() -> None:
    consumer, buffer = jammed()
    buffer.recycle()
    assert len(consumer.channels[0].held_buffers) == 1
    consumer.sent()
    consumer.gates[0].release()
    assert consumer.pools[0].snapshot().num_in_use == 0
    assert consumer.sent() == [CancelPartitionRequest(receiver(0))]  # and is forgotten
    consumer.connection.receive_data(b"")
    assert consumer.read(1) == b"b0"
    assert consumer.sent() == []
    consumer.close()


def test_a_connection_whose_last_channel_goes_while_data_waits_is_closed() -> None:
    consumer, buffer = jammed()
    for gate in consumer.gates:
        gate.release()
    assert consumer.sent() == [CancelPartitionRequest(receiver(0)), CloseRequest()]
    assert consumer.connection.is_closed
    assert not can_resume(consumer.connection)
    consumer.connection.receive_data(b"")
    buffer.recycle()
    consumer.close()


def test_a_pool_destroyed_while_data_waits_fails_its_channel_and_no_other() -> None:
    consumer, buffer = jammed()
    consumer.pools[0].destroy()
    assert can_resume(consumer.connection)
    consumer.connection.receive_data(b"")
    with pytest.raises(PoolDestroyedError, match="gate-0"):
        consumer.channels[0].poll()
    assert consumer.read(1) == b"b0"
    consumer.say(data(0, 2, b"a2"), data(1, 1, b"b1"))
    assert (consumer.read(1), consumer.connection.error) == (b"b1", None)
    buffer.recycle()
    consumer.close()


@pytest.mark.parametrize("has_buffer", [False, True])
def test_a_connection_lost_while_data_waits_fails_its_channels_and_keeps_nothing(has_buffer: bool) -> None:
    consumer, buffer = jammed()
    if has_buffer:
        buffer.recycle()
    consumer.connection.receive_end()
    assert isinstance(consumer.connection.error, RemoteTransportError)
    assert not can_resume(consumer.connection)
    assert consumer.pools[0].snapshot().num_in_use == (0 if has_buffer else 1)
    for channel in consumer.channels:
        with pytest.raises(RemoteTransportError, match="in the middle of a frame"):
            channel.poll()
    consumer.connection.receive_data(b"")
    if not has_buffer:
        buffer.recycle()
    consumer.close()


def test_a_fatal_error_is_heard_when_what_was_sent_before_it_has_been_read() -> None:
    consumer, buffer = jammed()
    consumer.say(ErrorResponse(java_error("java.io.IOException", "disk full"), None))
    assert consumer.connection.error is None
    buffer.recycle()
    consumer.connection.receive_data(b"")
    assert "disk full" in str(consumer.connection.error)
    consumer.close()


def test_staged_bytes_that_are_no_frames_end_the_connection() -> None:
    consumer, buffer = jammed()
    consumer.connection.receive_data(b"no frame at all")
    buffer.recycle()
    consumer.connection.receive_data(b"")
    assert isinstance(consumer.connection.error, RemoteProtocolError)
    consumer.close()


def test_a_gap_in_the_numbers_fails_the_channel_and_its_buffer_goes_home() -> None:
    """Without credits.

    Flink: `RemoteInputChannelTest#testExceptionOnReordering` (P86).
    """
    consumer = Consumer(num_buffers=1)
    consumer.say(data(0, 29, b"?"))
    assert consumer.pools[0].snapshot().num_in_use == 0
    with pytest.raises(RemoteProtocolError, match="expected buffer with sequence number 0, but received 29"):
        consumer.channels[0].poll()
    consumer.close()


def test_data_larger_than_a_buffer_is_refused_and_waits_for_none() -> None:
    consumer = Consumer(num_buffers=1)
    consumer.say(data(0, 0, bytes(SEGMENT + 1)))
    assert is_reading(consumer.connection)
    with pytest.raises(RemoteProtocolError, match="33 B do not fit a buffer of 32 B"):
        consumer.channels[0].poll()
    consumer.close()


def test_nothing_is_promised_and_a_blocked_producer_is_resumed() -> None:
    consumer = Consumer(num_buffers=2)
    assert frames_in(consumer.requests) == [PartitionRequest(partition(0), 0, 0, receiver(0), 0)]
    consumer.say(data(0, 0, b"a0"), event(0, 1, CheckpointBarrier(1, 0)))
    assert consumer.read() == b"a0"
    assert consumer.polled() == CheckpointBarrier(1, 0)
    assert consumer.sent() == []
    consumer.channels[0].resume()
    assert consumer.sent() == [ResumeConsumption(receiver(0))]
    consumer.close()


def test_a_channel_without_credits_has_no_buffers_of_its_own() -> None:
    consumer = Consumer(num_buffers=1)
    assert consumer.channels[0].buffers.exclusive_buffers == []
    assert "PoolBuffers" in repr(consumer.channels[0].buffers)


# -- the producer's end ------------------------------------------------------------------------------------------------


def test_above_the_high_mark_nothing_is_writable_until_below_the_low_mark() -> None:
    """1 segment and 1 byte, 2 segments; neither mark itself changes anything.

    Flink: `NettyServerLowAndHighWatermarkTest`.
    """
    marks = WaterMarks.of(NO_CREDIT)
    assert (marks.low_bytes, marks.high_bytes) == (SEGMENT + 1, 2 * SEGMENT)
    marks.hand_out(2 * SEGMENT)
    assert marks.is_writable
    marks.hand_out(1)
    assert not marks.is_writable
    marks.confirm(SEGMENT)
    assert (marks.num_pending, marks.is_writable) == (SEGMENT + 1, False)
    marks.confirm(1)
    assert (marks.num_pending, marks.is_writable) == (SEGMENT, True)
    marks.hand_out(SEGMENT)
    assert marks.is_writable


@pytest.mark.parametrize("num_bytes", [-1, 11])
def test_no_more_can_be_written_than_was_handed_out(num_bytes: int) -> None:
    marks = WaterMarks(5, 8)
    marks.hand_out(10)
    with pytest.raises(LocalUsageError, match=f"{num_bytes} B were written, 10 were handed out"):
        marks.confirm(num_bytes)
    assert (marks.num_pending, marks.is_writable) == (10, False)


def test_data_costs_nothing_without_credits() -> None:
    producer = Producer()
    producer.fill(b"0", b"1", b"2")
    producer.tell(PartitionRequest(partition(0), 0, 0, receiver(0), 0))
    sent = frames_in(b"".join(producer.connection.data_to_send()))
    producer.connection.data_sent()
    assert [bytes(message.payload) for message in sent] == [b"0", b"1"]  # 80 B of frames: above the high mark
    assert [bytes(message.payload) for message in frames_in(b"".join(producer.connection.data_to_send()))] == [b"2"]
    producer.close()


def test_credit_that_comes_all_the_same_is_no_error_and_of_no_use() -> None:
    producer = Producer()
    producer.tell(PartitionRequest(partition(0), 0, 0, receiver(0), 3), AddCredit(2, receiver(0)))
    assert not producer.connection.has_data_to_send
    producer.fill(*[b"x"] * 8)
    for _ in range(4):
        assert producer.handed_out() == 2 * (FRAME - SEGMENT + 1)
        producer.connection.data_sent()
    assert producer.handed_out() == 0
    producer.close()


def test_above_the_high_mark_nothing_is_handed_out_until_the_transport_is_below_the_low_mark() -> None:
    producer = Producer()
    producer.fill(*[bytes(SEGMENT)] * 6)
    producer.tell(PartitionRequest(partition(0), 0, 0, receiver(0), 0))
    assert (FRAME < 2 * SEGMENT + 1 < 2 * FRAME, producer.handed_out()) == (False, FRAME)
    assert not producer.connection.has_data_to_send
    assert producer.handed_out() == 0
    producer.connection.data_sent(FRAME - SEGMENT - 1)
    assert producer.handed_out() == 0
    producer.connection.data_sent(1)
    assert producer.connection.has_data_to_send
    assert producer.handed_out() == FRAME
    producer.close()


def test_a_buffer_goes_home_with_the_last_byte_of_its_frame() -> None:
    producer = Producer()
    producer.fill(b"0", b"1")
    producer.tell(PartitionRequest(partition(0), 0, 0, receiver(0), 0))
    size = producer.handed_out() // 2
    lent = [piece.segment for piece in producer.connection.lent_buffers]
    assert len(lent) == 2
    producer.connection.data_sent(size - 1)
    assert len(producer.connection.lent_buffers) == 2
    producer.connection.data_sent(1)
    assert [piece.segment for piece in producer.connection.lent_buffers] == lent[1:]
    with pytest.raises(LocalUsageError, match=f"{size + 1} B were written"):
        producer.connection.data_sent(size + 1)
    producer.connection.data_sent(size)
    assert producer.connection.lent_buffers == ()
    producer.close()


def test_with_credits_only_credit_limits_what_is_handed_out() -> None:
    producer = Producer(config=CREDIT)
    producer.fill(*[bytes(SEGMENT)] * 8)
    producer.tell(PartitionRequest(partition(0), 0, 0, receiver(0), 7))
    assert producer.handed_out() == 7 * FRAME
    producer.tell(AddCredit(1, receiver(0)))
    assert producer.handed_out() == FRAME
    producer.close()


def test_the_last_word_of_a_connection_waits_its_turn_and_is_not_lost() -> None:
    producer = Producer()
    producer.fill(bytes(SEGMENT))
    producer.tell(PartitionRequest(partition(0), 0, 0, receiver(0), 0))
    assert producer.handed_out() == FRAME
    with pytest.raises(RemoteProtocolError):
        producer.connection.receive_data(b"no frame at all")
    assert (producer.connection.is_closed, producer.handed_out()) == (True, 0)
    producer.connection.data_sent()
    (answer,) = frames_in(b"".join(producer.connection.data_to_send()))
    assert isinstance(answer, ErrorResponse)
    producer.close()


# -- both ends ---------------------------------------------------------------------------------------------------------


NUM_ROUNDS = 300  # of which a slow task reads in three


@pytest.mark.parametrize("config", [NO_CREDIT, CREDIT], ids=["without credits", "with credits"])
def test_while_nobody_is_slow_all_tasks_read_in_every_round(config: Config) -> None:
    world = World(config)
    assert world.play(NUM_ROUNDS) == [300, 300, 300, 300]
    world.close()


def test_without_credits_one_slow_task_makes_all_on_its_connection_slow() -> None:
    """The jam: three tasks that could read in every round move at the pace of the one that reads in every hundredth.

    Ahead of it they are by what its gate took before it was full, and by one.
    """
    world = World(NO_CREDIT)
    assert world.play(NUM_ROUNDS, slow={3}) == [8, 8, 8, 3]
    world.close()


def test_with_credits_one_slow_task_is_slow_alone() -> None:
    """At least 95 % of what the others read when nobody is slow; in fact all of it."""
    world = World(CREDIT)
    assert world.play(NUM_ROUNDS, slow={3}) == [300, 300, 300, 3]
    world.close()


def test_a_jam_reaches_every_task_that_writes_and_spares_the_memory_of_those_that_read() -> None:
    """Each place of the theory: the gate's pool, the wire, the water mark, the subpartitions, the tasks."""
    world = World(NO_CREDIT)
    world.play(99, slow={3})
    assert [channel.snapshot().num_available for channel in world.consumer.channels] == [0, 0, 0, 4]
    assert [pool.snapshot().num_in_use for pool in world.consumer.pools] == [0, 0, 0, 4]
    assert len(world.responses) == world.capacity
    assert world.unwritten
    assert not world.producer.connection.has_data_to_send
    assert [writer.is_available for writer in world.producer.writers] == [False, False, False, False]
    world.close()


def test_with_credits_nothing_of_a_slow_task_is_under_way() -> None:
    world = World(CREDIT)
    world.play(99, slow={3})
    assert [channel.snapshot().num_available for channel in world.consumer.channels] == [3, 3, 3, 4]
    assert (len(world.responses), len(world.unwritten)) == (0, 0)
    assert [writer.is_available for writer in world.producer.writers] == [True, True, True, False]
    world.close()


def test_a_jam_ends_when_the_slow_task_is_cancelled() -> None:
    world = World(NO_CREDIT)
    before = world.play(100, slow={3})[:3]
    world.consumer.gates[3].release()
    after = world.play(100, slow={3})[:3]
    assert [num_after - num_before for num_before, num_after in zip(before, after, strict=True)] == [100, 100, 100]
    world.close()


# -- any schedule ------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(one_in=7)
@pytest.mark.parametrize("seed", range(300))
def test_every_record_arrives_once_and_in_order_and_every_segment_comes_home(seed: int) -> None:
    schedule = Schedule(seed)
    schedule.run(1_000)
    schedule.finish()
    assert [schedule.arrived(task) for task in range(len(schedule.sent))] == schedule.sent
    schedule.world.close()


@pytest.mark.parametrize("seed", range(60))
def test_a_task_cancelled_at_any_moment_keeps_no_other_from_its_end(seed: int) -> None:
    schedule = Schedule(seed)
    schedule.run(int(schedule.random.integers(400)))
    gone = int(schedule.random.integers(len(schedule.world.inputs)))
    schedule.world.inputs[gone].close()
    schedule.world.consumer.gates[gone].release()
    schedule.run(200)
    schedule.finish()
    num_channels = len(schedule.world.consumer.gates[0].channels)
    for task, sent in enumerate(schedule.sent):
        arrived = schedule.arrived(task)
        assert arrived == (sent[: len(arrived)] if task // num_channels == gone else sent)
    schedule.world.close()


@pytest.mark.parametrize("seed", range(60))
def test_a_connection_lost_at_any_moment_leaks_nothing(seed: int) -> None:
    schedule = Schedule(seed)
    schedule.run(int(schedule.random.integers(400)))
    schedule.world.consumer.connection.receive_end()
    schedule.check()
    for channel in schedule.world.consumer.channels:
        if not channel.is_released:
            with pytest.raises(RemoteTransportError, match="unexpectedly closed"):
                channel.poll()
    schedule.world.close()


def test_the_schedules_have_jams() -> None:
    num_waits = []
    for seed in range(12):
        schedule = Schedule(seed)
        schedule.run(1_000)
        num_waits.append(schedule.num_waits)
        schedule.world.close()
    assert sum(waits > 100 for waits in num_waits) >= 6, num_waits
