"""Bytes arrive: channels, the gate that gives each its turn, and elements again."""

from refimpl.consumer.channel import BufferOrEvent, ChannelSnapshot, InputChannel
from refimpl.consumer.input_gate import GateSnapshot, InputGate
from refimpl.consumer.local_channel import LocalInputChannel
from refimpl.consumer.network_input import NetworkInput
from refimpl.consumer.watermark_valve import StatusWatermarkValve

__all__ = [
    "BufferOrEvent",
    "ChannelSnapshot",
    "GateSnapshot",
    "InputChannel",
    "InputGate",
    "LocalInputChannel",
    "NetworkInput",
    "StatusWatermarkValve",
]
