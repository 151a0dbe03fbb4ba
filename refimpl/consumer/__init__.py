"""Bytes arrive: channels, the gate that gives each its turn, elements again; one watermark and one barrier of many."""

from refimpl.consumer.alignment import *
from refimpl.consumer.barrier_handler import *
from refimpl.consumer.buffer_manager import *
from refimpl.consumer.channel import *
from refimpl.consumer.channel_capture import *
from refimpl.consumer.connected_channel import *
from refimpl.consumer.input_gate import *
from refimpl.consumer.local_channel import *
from refimpl.consumer.network_input import *
from refimpl.consumer.received_queue import *
from refimpl.consumer.recovered_channel import *
from refimpl.consumer.remote_channel import *
from refimpl.consumer.sequence import *
from refimpl.consumer.two_input_valve import *
from refimpl.consumer.two_inputs import *
from refimpl.consumer.unaligned import *
from refimpl.consumer.union_gate import *
from refimpl.consumer.watermark_valve import *
