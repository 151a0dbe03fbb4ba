"""One step at a time, in an order you choose."""

from refimpl.drivers.simulation.actions import Action, AskAgain, Deliver, Flush, ReadOn, Send, SendBarrier, StepTask
from refimpl.drivers.simulation.policy import Delays, Policy
from refimpl.drivers.simulation.run import Simulation
from refimpl.drivers.simulation.wire import CAPACITY, Link, Way

__all__ = [
    "CAPACITY",
    "Action",
    "AskAgain",
    "Delays",
    "Deliver",
    "Flush",
    "Link",
    "Policy",
    "ReadOn",
    "Send",
    "SendBarrier",
    "Simulation",
    "StepTask",
    "Way",
]
