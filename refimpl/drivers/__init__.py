"""Somebody runs it: the only place for clocks, threads and sockets.

The contract between a driver and the core:

1. Calls into one process' tasks and queues never overlap.
2. No call blocks. `None`, `IDLE` and `BACKPRESSURED` mean: ask again after something changed.
3. After any call something else may be able to move: wake whoever waits.
4. Bytes for another process are asked for only when the transport can take them.
5. Time is passed in: `next_deadline(now)`, `on_timeout(now)`.
6. `Task.process`, the user's code, may run outside the exclusion; everything else may not.
"""

from refimpl.drivers.link import Link, Way
from refimpl.drivers.simulation import Action, AskAgain, Deliver, Flush, Send, Simulation, StepTask
from refimpl.drivers.threads import ThreadedRun

__all__ = ["Action", "AskAgain", "Deliver", "Flush", "Link", "Send", "Simulation", "StepTask", "ThreadedRun", "Way"]
