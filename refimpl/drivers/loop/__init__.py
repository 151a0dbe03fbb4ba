"""A job in one event loop."""

from refimpl.drivers.loop.connections import Changes, Connections
from refimpl.drivers.loop.run import AsyncRun

__all__ = [
    "AsyncRun",
    "Changes",
    "Connections",
]
