"""Bytes have a home: segments, the buffers that lend them, and the pools they come back to."""

from refimpl.memory.buffer import *
from refimpl.memory.builder import *
from refimpl.memory.channel_quota import *
from refimpl.memory.data_type import *
from refimpl.memory.local_pool import *
from refimpl.memory.network_pool import *
from refimpl.memory.pages import *
from refimpl.memory.pool_snapshots import *
from refimpl.memory.promises import *
from refimpl.memory.segment import *
