"""Bytes wait: which channel, which queue, and when a buffer leaves."""

from refimpl.producer.blocking_partition import *
from refimpl.producer.blocking_subpartition import *
from refimpl.producer.bounded_blocking import *
from refimpl.producer.bounded_data import *
from refimpl.producer.broadcast_writer import *
from refimpl.producer.buffer_writing import *
from refimpl.producer.channel_copy import *
from refimpl.producer.dirty_channels import *
from refimpl.producer.key_groups import *
from refimpl.producer.output_flusher import *
from refimpl.producer.overtaking import *
from refimpl.producer.partition_type import *
from refimpl.producer.record_writer import *
from refimpl.producer.result_partition import *
from refimpl.producer.result_subpartition import *
from refimpl.producer.selector import *
from refimpl.producer.subpartition import *
from refimpl.producer.subpartition_queue import *
from refimpl.producer.subpartition_snapshot import *
from refimpl.producer.subpartition_view import *
