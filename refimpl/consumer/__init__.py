"""Bytes arrive: channels, the gate that gives each its turn, elements again; one watermark and one barrier of many."""

from refimpl.consumer.alignment import BarrierAligner, BarrierTracker, barrier_handler
from refimpl.consumer.barrier_handler import (
    Abort,
    AbortReason,
    AlignmentSnapshot,
    BarrierHandler,
    Complete,
    Decision,
    ResumeChannel,
    act_on,
)
from refimpl.consumer.buffer_manager import BufferManager, BufferManagerSnapshot
from refimpl.consumer.channel import BufferOrEvent, ChannelSnapshot, InputChannel
from refimpl.consumer.connected_channel import (
    CHANNEL_TRANSITIONS,
    ChannelBuffers,
    ChannelEvent,
    ChannelState,
    ConnectedChannel,
)
from refimpl.consumer.input_gate import GateSnapshot, InputGate
from refimpl.consumer.local_channel import LocalInputChannel
from refimpl.consumer.network_input import NetworkInput
from refimpl.consumer.received_queue import ReceivedQueue
from refimpl.consumer.remote_channel import RemoteInputChannel
from refimpl.consumer.sequence import SequenceNumbers
from refimpl.consumer.watermark_valve import StatusWatermarkValve

__all__ = [
    "CHANNEL_TRANSITIONS",
    "Abort",
    "AbortReason",
    "AlignmentSnapshot",
    "BarrierAligner",
    "BarrierHandler",
    "BarrierTracker",
    "BufferManager",
    "BufferManagerSnapshot",
    "BufferOrEvent",
    "ChannelBuffers",
    "ChannelEvent",
    "ChannelSnapshot",
    "ChannelState",
    "Complete",
    "ConnectedChannel",
    "Decision",
    "GateSnapshot",
    "InputChannel",
    "InputGate",
    "LocalInputChannel",
    "NetworkInput",
    "ReceivedQueue",
    "RemoteInputChannel",
    "ResumeChannel",
    "SequenceNumbers",
    "StatusWatermarkValve",
    "act_on",
    "barrier_handler",
]
