"""State machines as tables: every pair of a state and an event is in its table, or is refused."""

from __future__ import annotations

from enum import Enum

import pytest

from refimpl.config import Config
from refimpl.consumer import ChannelEvent, ChannelState, RemoteInputChannel
from refimpl.consumer.connected_channel import TRANSITIONS as OF_CHANNEL
from refimpl.exchange import Found, FrameDecoder, FramePart
from refimpl.exchange.decoder import TRANSITIONS as OF_DECODER
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from tests.support.consumer_rig import HeapBuffers

TABLES = [
    pytest.param(OF_DECODER, FramePart, Found, FramePart.HEADER, id="decoder"),
    pytest.param(OF_CHANNEL, ChannelState, ChannelEvent, ChannelState.OPEN, id="channel"),
]


@pytest.mark.parametrize(("table", "states", "events", "first"), TABLES)
def test_every_state_has_a_row_and_is_reached_and_every_event_means_something(
    table: dict[Enum, dict[Enum, Enum]], states: type[Enum], events: type[Enum], first: Enum
) -> None:
    assert set(table) == set(states)
    assert {event for row in table.values() for event in row} == set(events)
    reached, to_visit = {first}, [first]
    while to_visit:
        new = set(table[to_visit.pop()].values()) - reached
        reached |= new
        to_visit += new
    assert reached == set(states)


def channel_in(state: ChannelState) -> RemoteInputChannel:
    config = Config(segment_size_bytes=16)
    home = NetworkBufferPool(4, 16)
    own = home.request_unpooled(1, "own")
    channel = RemoteInputChannel(0, bytes(16), "map-0[0]", own, home, LocalBufferPool(home, 0, 1, "floating"), config)
    channel.state = state
    return channel


@pytest.mark.parametrize("state", ChannelState)
@pytest.mark.parametrize("event", ChannelEvent)
def test_a_channel_goes_where_its_table_says_or_nowhere(state: ChannelState, event: ChannelEvent) -> None:
    channel = channel_in(state)
    if event in OF_CHANNEL[state]:
        channel._go_on(event)
        assert channel.state is OF_CHANNEL[state][event]
    else:
        with pytest.raises(KeyError):
            channel._go_on(event)
        assert channel.state is state


@pytest.mark.parametrize("part", FramePart)
@pytest.mark.parametrize("found", Found)
def test_a_decoder_goes_where_its_table_says_or_nowhere(part: FramePart, found: Found) -> None:
    decoder = FrameDecoder(HeapBuffers(), 1_024)
    decoder._part = part
    if found in OF_DECODER[part]:
        decoder._go_on(found, 7)
        assert (decoder._part, decoder._num_wanted) == (OF_DECODER[part][found], 7)
    else:
        with pytest.raises(KeyError):
            decoder._go_on(found, 7)
        assert decoder._part is part
