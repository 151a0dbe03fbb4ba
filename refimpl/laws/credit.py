"""Credit: what a channel has promised is on its way, with the producer, or data coming back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from refimpl.consumer.connected_channel import ConnectedChannel
from refimpl.exchange.consumer_connection import ConsumerConnection
from refimpl.exchange.messages import AddCredit, BufferResponse, Message, PartitionRequest
from refimpl.exchange.producer_connection import ProducerConnection
from refimpl.laws.holders import reading_of

__all__ = ["check_credit"]


def check_credit(
    channels: Iterable[ConnectedChannel],
    consumer: ConsumerConnection,
    producer: ProducerConnection,
    to_producer: Iterable[Message],
    to_consumer: Iterable[Message],
) -> None:
    """What a channel has promised is on its way, with the producer, or data on the way back.

    `channels` are those of this connection; the messages are those that one end has sent and the
    other has not received. Events cost nothing and do not count. The law holds for every channel that
    still reads, until the connection ends.
    """
    if consumer.is_closed or producer.is_closed:
        return
    on_its_way: Counter[bytes] = Counter()
    readers = producer.snapshot().readers
    asked_for = set(readers)
    for message in (*consumer.unsent_messages, *to_producer):
        if isinstance(message, PartitionRequest | AddCredit):
            on_its_way[message.receiver] += message.credit
            asked_for.add(message.receiver)
    num_data: Counter[bytes] = Counter()
    for answer in to_consumer:
        if isinstance(answer, BufferResponse) and answer.data_type.is_buffer:
            num_data[answer.receiver] += 1
    for channel, credit in reading_of(channels):
        num_empty = len(channel.buffers.empty_buffers)
        assert num_empty == credit.num_unannounced + credit.num_promised, (
            f"{channel} has {num_empty} empty buffers, {credit.num_promised} promised and "
            f"{credit.num_unannounced} to be announced"
        )
        receiver = channel.receiver
        if receiver not in asked_for:
            continue  # the wait before the request is repeated
        at_producer = readers[receiver].credit if receiver in readers else 0
        assert at_producer >= 0, f"{channel}: its producer has sent {-at_producer} buffers without credit"
        assert credit.num_promised == on_its_way[receiver] + at_producer + num_data[receiver], (
            f"{channel} has promised {credit.num_promised} buffers; {on_its_way[receiver]} credits are on "
            f"their way, {at_producer} with the producer, {num_data[receiver]} buffers on the way back"
        )
