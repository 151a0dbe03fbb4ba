"""Bytes travel: frames, credit, and the two ends of a connection."""

from refimpl.exchange.consumer_connection import *
from refimpl.exchange.credit import *
from refimpl.exchange.fair_turns import *
from refimpl.exchange.frame_decoder import *
from refimpl.exchange.frames import *
from refimpl.exchange.framing import *
from refimpl.exchange.java_errors import *
from refimpl.exchange.java_writer import *
from refimpl.exchange.lent_buffers import *
from refimpl.exchange.messages import *
from refimpl.exchange.partition_reader import *
from refimpl.exchange.producer_connection import *
from refimpl.exchange.producer_credit import *
from refimpl.exchange.request_decoder import *
from refimpl.exchange.wire_format import *
from refimpl.exchange.wire_snapshot import *
