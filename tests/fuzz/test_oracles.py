"""Engines broken on purpose: each must break a law of the fuzz, in a few inputs, in the words that law has for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from refimpl.consumer import BufferManager
from refimpl.exchange import (
    AddCredit,
    BufferReceived,
    CloseRequest,
    ConnectionState,
    ConsumerConnection,
    ConsumerCredit,
    FrameDecoder,
    Message,
    PartitionReader,
    PartitionRequestQueue,
    ProducerConnection,
    RequestDecoder,
    ResumeConsumption,
    encode,
)
from refimpl.exchange.frames import BodyReader
from refimpl.exchange.producer_credit import SubpartitionReader
from refimpl.memory import BufferSlice
from tests.fuzz.harness import fault_in
from tests.fuzz.inputs import CONSUMER, PRODUCER, Input
from tests.fuzz.sessions import numbered_input

Patch = pytest.MonkeyPatch
MOST_INPUTS = 2_000


def wrong_exception(patch: Patch) -> None:
    real = BodyReader.number

    def number(reader: BodyReader, least: int = 0) -> int:
        found = real(reader, -(2**31))
        if found < least:
            raise ValueError("this goes through to the driver")
        return found

    patch.setattr(BodyReader, "number", number)


def not_closed_after_an_error(patch: Patch) -> None:
    patch.setattr(ProducerConnection, "_close", lambda _connection: None)


def credit_is_made(patch: Patch) -> None:
    real = ProducerConnection._handle

    def handle(connection: ProducerConnection, message: Message) -> None:
        real(connection, message)
        if isinstance(message, AddCredit) and message.receiver in connection.readers:
            connection.readers[message.receiver].credit += 1

    patch.setattr(ProducerConnection, "_handle", handle)


def a_number_is_left_out(patch: Patch) -> None:
    real = SubpartitionReader.poll

    def poll(reader: SubpartitionReader) -> object:
        reader.sequence_number += reader.sequence_number == 1
        return real(reader)

    patch.setattr(SubpartitionReader, "poll", poll)


def a_reader_is_forgotten(patch: Patch) -> None:
    patch.setattr(PartitionRequestQueue, "enqueue", lambda _queue, _reader: None)


def data_is_not_announced(patch: Patch) -> None:
    patch.setattr(ProducerConnection, "has_data_to_send", property(lambda connection: bool(connection.queue.answers)))


def lent_memory_never_comes_home(patch: Patch) -> None:
    patch.setattr(
        ProducerConnection, "data_sent", lambda connection, _num_bytes=None: connection.queue.lent._lent.clear()
    )


def answers_without_end(patch: Patch) -> None:
    patch.setattr("refimpl.exchange.fair_turns._MAX_ANSWERS", 10**9)


def memory_for_what_has_not_come(patch: Patch) -> None:
    real = RequestDecoder.next_message

    def next_message(decoder: RequestDecoder) -> Message | None:
        return real(decoder) if bytearray(2**20) else None

    patch.setattr(RequestDecoder, "next_message", next_message)


def messages_are_remembered(patch: Patch) -> None:
    real = ConsumerConnection._dispatch

    def dispatch(connection: ConsumerConnection, message: Message) -> None:
        connection.__dict__.setdefault("_history", []).append(message)
        real(connection, message)

    patch.setattr(ConsumerConnection, "_dispatch", dispatch)


def an_unfinished_payload_is_lost(patch: Patch) -> None:
    real = FrameDecoder.close

    def close(decoder: FrameDecoder) -> None:
        decoder._buffer = None
        real(decoder)

    patch.setattr(FrameDecoder, "close", close)


def pieces_share_a_reference(patch: Patch) -> None:
    real = BufferSlice.__init__

    def init(piece: BufferSlice, parent: object, start: int, end: int) -> None:
        real(piece, parent, start, end)
        if start and parent.num_references > 1 and isinstance(parent.recycler, BufferManager):
            parent.num_references -= 1

    patch.setattr(BufferSlice, "__init__", init)


def a_payload_is_spoiled(patch: Patch) -> None:
    real = FrameDecoder._hand_over

    def hand_over(decoder: FrameDecoder) -> BufferReceived:
        received = real(decoder)
        if received.buffer is not None and received.size > 8:
            received.buffer.memory[8] ^= 1
        return received

    patch.setattr(FrameDecoder, "_hand_over", hand_over)


def credit_is_announced_twice(patch: Patch) -> None:
    def announce(credit: ConsumerCredit) -> int:
        credit.num_promised += credit.num_unannounced
        return credit.num_unannounced

    patch.setattr(ConsumerCredit, "announce", announce)


def announced_and_not_sent(patch: Patch) -> None:
    real = ConsumerCredit.announce
    patch.setattr(ConsumerCredit, "announce", lambda credit: real(credit) // 2)


def floating_buffers_are_kept(patch: Patch) -> None:
    real = BufferManager.release

    def release(manager: BufferManager, received: object) -> None:
        manager.floating.clear()
        real(manager, received)

    patch.setattr(BufferManager, "release", release)


def channels_are_not_told(patch: Patch) -> None:
    def fail(connection: ConsumerConnection, error: Exception) -> None:
        connection.state, connection.error = ConnectionState.FAILED, error
        connection.decoder.close()

    patch.setattr(ConsumerConnection, "_fail", fail)


def last_words_after_the_end(patch: Patch) -> None:
    real = ConsumerConnection.data_to_send
    patch.setattr(
        ConsumerConnection,
        "data_to_send",
        lambda connection: encode(CloseRequest()) if connection.is_closed else real(connection),
    )


def a_resume_is_lost(patch: Patch) -> None:
    real = PartitionReader.news
    patch.setattr(
        PartitionReader, "news", lambda reader: [each for each in real(reader) if type(each) is not ResumeConsumption]
    )


def a_wait_is_never_over(patch: Patch) -> None:
    real = PartitionReader.next_request

    def next_request(reader: PartitionReader) -> object:
        due_ms = reader.due_ms
        request = real(reader)
        reader.due_ms = due_ms
        return request

    patch.setattr(PartitionReader, "next_request", next_request)


MUTANTS: list[tuple[Callable[[Patch], None], str]] = [
    (wrong_exception, "ValueError: this goes through"),
    (not_closed_after_an_error, "a connection that failed is not closed"),
    (credit_is_made, "it was given"),
    (a_number_is_left_out, "is not _Account"),
    (a_reader_is_forgotten, "has been forgotten"),
    (data_is_not_announced, "has data to send, and does not say so"),
    (lent_memory_never_comes_home, "has 0 holders"),
    (answers_without_end, "answers wait"),
    (memory_for_what_has_not_come, "it took up to"),
    (messages_are_remembered, "holds"),
    (an_unfinished_payload_is_lost, "has 0 holders"),
    (pieces_share_a_reference, "holders"),
    (a_payload_is_spoiled, "was written"),
    (credit_is_announced_twice, "buffers are not credit"),
    (announced_and_not_sent, "announced something else"),
    (floating_buffers_are_kept, "has 0 holders"),
    (channels_are_not_told, "was not told"),
    (last_words_after_the_end, "something goes out after the end"),
    (a_resume_is_lost, "nothing moves"),
    (a_wait_is_never_over, " is over at "),
]
NEED_A_FLOOD = {answers_without_end, messages_are_remembered}


@pytest.mark.slow
@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize(("mutant", "complaint"), MUTANTS, ids=[mutant.__name__ for mutant, _ in MUTANTS])
def test_a_broken_engine_is_found_out(
    mutant: Callable[[Patch], None], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    if mutant in NEED_A_FLOOD:
        monkeypatch.setattr("tests.fuzz.sessions.HOW_OFTEN_A_FLOOD", {CONSUMER: 1.0, PRODUCER: 1.0})
    stories = []
    for number in range(MOST_INPUTS):
        fault = fault_in(numbered_input("mutants", number), is_weighed=mutant is memory_for_what_has_not_come)
        if fault is not None:
            stories.append(fault.story)
            if complaint in fault.story:
                return
    raise AssertionError(f"nobody complains of {complaint!r}, but:\n{stories[:3]}")


def test_an_input_that_never_ends_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def loop(_given: Input) -> None:
        while True:
            pass

    monkeypatch.setattr("tests.fuzz.harness.MAX_SECONDS", 1)
    monkeypatch.setattr("tests.fuzz.harness.play", loop)
    fault = fault_in(numbered_input("loop", 0))
    assert fault is not None
    assert "an input takes more than 1 s" in fault.story
