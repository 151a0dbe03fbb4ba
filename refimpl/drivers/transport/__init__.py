"""Connections between processes, and the two ends of the engine's own, as every driver but the simulation uses them."""

from refimpl.drivers.transport.addresses import *
from refimpl.drivers.transport.ends import *
from refimpl.drivers.transport.few_warnings import *
from refimpl.drivers.transport.pace import *
from refimpl.drivers.transport.refusals import *
from refimpl.drivers.transport.sockets import *
from refimpl.drivers.transport.streams import *
from refimpl.drivers.transport.tls import *
from refimpl.drivers.transport.tls_stream import *
