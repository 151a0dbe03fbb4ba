"""A job in one event loop."""

from refimpl.drivers.loop.attempt import *
from refimpl.drivers.loop.connections import *
from refimpl.drivers.loop.job_in_loop import *
from refimpl.drivers.loop.regions import *
from refimpl.drivers.loop.run import *
