"""A channel and a decoder go from state to state as their tables say, or not at all."""

from __future__ import annotations

import pytest

from refimpl.config import Config
from refimpl.consumer import CHANNEL_TRANSITIONS, ChannelEvent, ChannelState, RemoteInputChannel
from refimpl.errors import LocalUsageError
from refimpl.exchange import FRAME_TRANSITIONS, Found, FrameDecoder, FramePart
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from tests.support.consumer_rig import HeapBuffers


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
    if event in CHANNEL_TRANSITIONS[state]:
        channel._go_on(event)
        assert channel.state is CHANNEL_TRANSITIONS[state][event]
    else:
        with pytest.raises(LocalUsageError):
            channel._go_on(event)
        assert channel.state is state


@pytest.mark.parametrize("part", FramePart)
@pytest.mark.parametrize("found", Found)
def test_a_decoder_goes_where_its_table_says_or_nowhere(part: FramePart, found: Found) -> None:
    decoder = FrameDecoder(HeapBuffers(), 1_024)
    decoder._part = part
    if found in FRAME_TRANSITIONS[part]:
        decoder._go_on(found, 7)
        assert (decoder._part, decoder._num_wanted) == (FRAME_TRANSITIONS[part][found], 7)
    else:
        with pytest.raises(LocalUsageError):
            decoder._go_on(found, 7)
        assert decoder._part is part
