"""Runs of a job: the only place for clocks, threads and sockets. A package for each driver, and one for transport.

The contract between a driver and the core:

1. Calls into one TaskManager's tasks, queues and connections never overlap.
2. No call blocks. `None`, `IDLE` and `BACKPRESSURED` mean: ask again after something changed.
3. After any call something else may be able to move: wake what waits.
4. Bytes for another TaskManager are asked for only when the transport can take them, and written
   outside the call.
5. Time is passed in: `next_deadline(now)`, `on_timeout(now)`. A driver that does not see each write asks an output
   once per buffer timeout: see `FlushClock`.
6. Commands are values (`Pause`, `Swap`, ...), and `Deployment.do` carries them out; a driver decides when. What it
   cannot offer it refuses, and says why: see `Controls`.
7. `Task.process`, the user's code, may run outside the exclusion; everything else may not.
8. With a store a driver takes what tasks say of checkpoints to the coordinator, and its word to them: see
   `JobRecovery`. It calls the store outside of whatever keeps calls apart. What follows after a failure is decided in
   one place for those whose clock runs by itself: see `RestartingJob`.

9. A job with blocking exchanges is deployed region by region, on memory and results that stay: see `JobRegions`;
   in a cluster its JobMaster sees to that. Spark, which starts all tasks of a job at one time, refuses such a job.

One job runs on each of them, on one TaskManager or several, with the same result:

    driver        keeps calls apart by             waits by       time        TaskManagers speak over
    Simulation    one loop that picks              never          virtual     a wire of lists
    ThreadedRun   one monitor per TaskManager      wakers         monotonic   TCP
    AsyncRun      the event loop                   futures        monotonic   TCP
    ProcessRun    a process per TaskManager        as on threads  monotonic   TCP
    SparkRun      a Spark task per TaskManager     as on threads  monotonic   TCP, from machine to machine

Many jobs share a cluster, every component of which is a process, or a thread of a `MiniCluster`: see `drivers.cluster`.
One to step through is `drivers.cluster_simulation`.
"""

from refimpl.drivers.control import RunControl
from refimpl.drivers.loop.run import AsyncRun
from refimpl.drivers.processes.run import ProcessRun
from refimpl.drivers.simulation.run import Simulation
from refimpl.drivers.spark.run import SparkRun
from refimpl.drivers.threads.run import ThreadedRun
from refimpl.job.commands import Command, Pause, Resume, SetTimeout, Slow, Swap, SwapFunction

__all__ = [
    "AsyncRun",
    "Command",
    "Pause",
    "ProcessRun",
    "Resume",
    "RunControl",
    "SetTimeout",
    "Simulation",
    "Slow",
    "SparkRun",
    "Swap",
    "SwapFunction",
    "ThreadedRun",
]
