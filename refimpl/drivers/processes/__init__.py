"""A job on several processes of this machine."""

from refimpl.drivers.processes.child import ChildProcess
from refimpl.drivers.processes.group import SECONDS_TO_SETTLE, ProcessGroup
from refimpl.drivers.processes.messages import (
    TICKET_BYTES,
    Answer,
    Close,
    Deploy,
    Ended,
    Look,
    Request,
    Results,
    Settle,
    Start,
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
    "ChildProcess",
    "Close",
    "Delivery",
    "Deploy",
    "Ended",
    "Look",
    "Outlet",
    "ProcessGroup",
    "ProcessRun",
    "Request",
    "Results",
    "Settle",
    "Start",
    "Worker",
    "obey",
    "pack",
    "portable",
    "unpack",
    "without_sinks",
]
