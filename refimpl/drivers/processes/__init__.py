"""A job on several processes of this machine."""

from refimpl.drivers.processes.child import Child
from refimpl.drivers.processes.group import SECONDS_TO_SETTLE, Crew
from refimpl.drivers.processes.messages import (
    TICKET_BYTES,
    Answer,
    Command,
    Deploy,
    Ended,
    Results,
    pack,
    portable,
    unpack,
    without_sinks,
)
from refimpl.drivers.processes.run import ProcessRun
from refimpl.drivers.processes.worker import Delivery, Outlet, Worker, obey

__all__ = [
    "SECONDS_TO_SETTLE",
    "TICKET_BYTES",
    "Answer",
    "Child",
    "Command",
    "Crew",
    "Delivery",
    "Deploy",
    "Ended",
    "Outlet",
    "ProcessRun",
    "Results",
    "Worker",
    "obey",
    "pack",
    "portable",
    "unpack",
    "without_sinks",
]
