"""A job in one event loop."""

from refimpl.drivers.loop.connections import *
from refimpl.drivers.loop.run import *
