"""Somebody runs it: the only place for clocks, threads and sockets.

The contract between a driver and the core:

1. Calls into one TaskManager's tasks, queues and connections never overlap.
2. No call blocks. `None`, `IDLE` and `BACKPRESSURED` mean: ask again after something changed.
3. After any call something else may be able to move: wake whoever waits.
4. Bytes for another TaskManager are asked for only when the transport can take them, and written
   outside the call.
5. Time is passed in: `next_deadline(now)`, `on_timeout(now)`.
6. `Task.process`, the user's code, may run outside the exclusion; everything else may not.

One job runs on each of them, on one TaskManager or several, with the same result:

    driver        keeps calls apart by             waits by       time        TaskManagers speak over
    Simulation    one loop that picks              never          virtual     a wire of lists
    ThreadedRun   one monitor per TaskManager      bells          monotonic   TCP
    AsyncRun      the event loop                   futures        monotonic   TCP
    ProcessRun    a process per TaskManager        as on threads  monotonic   TCP
    SparkRun      a Spark task per TaskManager     as on threads  monotonic   TCP, from machine to machine
"""

from refimpl.drivers.actions import Action, AskAgain, Deliver, Flush, ReadOn, Send, SendBarrier, StepTask
from refimpl.drivers.addresses import Address, resolve_address, show_address
from refimpl.drivers.aio import AsyncRun
from refimpl.drivers.barrier_task import Order, run_task_manager
from refimpl.drivers.bell import Bell, Lull, let_pass
from refimpl.drivers.carrier import LINGER_S, Carrier, Host
from refimpl.drivers.child import Child
from refimpl.drivers.crew import SECONDS_TO_SETTLE, Crew
from refimpl.drivers.ends import ConsumerEnd, End, ProducerEnd
from refimpl.drivers.executors import explain_failure, needed_by, ship, wait_for_slots
from refimpl.drivers.flusher import Flusher, ShortTurns, send_barriers
from refimpl.drivers.link import CAPACITY, Link, Way
from refimpl.drivers.lookout import Lookout, Speakers, Spoken
from refimpl.drivers.loop_connections import Changes, Connections
from refimpl.drivers.makers import makers_of
from refimpl.drivers.pipes import (
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
from refimpl.drivers.processes import ProcessRun
from refimpl.drivers.refusals import HandshakeError, Refusal, explain_refusal, may_be_tls
from refimpl.drivers.roll_call import Keeper, Member, Outcome
from refimpl.drivers.simulation import Simulation
from refimpl.drivers.sockets import (
    ClosedHereError,
    ConnectionFailedError,
    PlainStream,
    SocketUse,
    batches,
    rest_after,
)
from refimpl.drivers.spark import SparkRun, SparkSource
from refimpl.drivers.spark_results import SparkResults
from refimpl.drivers.spark_rows import COUNTS, ERROR, RESULT, ROW_SCHEMA, TRACE, Rows, TraceSender, TraceTable
from refimpl.drivers.streams import (
    ByteStream,
    Handshake,
    Incoming,
    Listener,
    Security,
    connect,
    listen,
    reach,
)
from refimpl.drivers.task_threads import BUFFERS_PER_STEP, TaskManagerThreads
from refimpl.drivers.threads import ThreadedRun
from refimpl.drivers.tls import ClusterKeys, MutualTls, PemPair
from refimpl.drivers.tls_stream import TlsStream
from refimpl.drivers.worker import Delivery, Outlet, Worker, obey

__all__ = [
    "BUFFERS_PER_STEP",
    "CAPACITY",
    "COUNTS",
    "ERROR",
    "LINGER_S",
    "RESULT",
    "ROW_SCHEMA",
    "SECONDS_TO_SETTLE",
    "TICKET_BYTES",
    "TRACE",
    "Action",
    "Address",
    "Answer",
    "AskAgain",
    "AsyncRun",
    "Bell",
    "ByteStream",
    "Carrier",
    "Changes",
    "Child",
    "ClosedHereError",
    "ClusterKeys",
    "Command",
    "ConnectionFailedError",
    "Connections",
    "ConsumerEnd",
    "Crew",
    "Deliver",
    "Delivery",
    "Deploy",
    "End",
    "Ended",
    "Flush",
    "Flusher",
    "Handshake",
    "HandshakeError",
    "Host",
    "Incoming",
    "Keeper",
    "Link",
    "Listener",
    "Lookout",
    "Lull",
    "Member",
    "MutualTls",
    "Order",
    "Outcome",
    "Outlet",
    "PemPair",
    "PlainStream",
    "ProcessRun",
    "ProducerEnd",
    "ReadOn",
    "Refusal",
    "Results",
    "Rows",
    "Security",
    "Send",
    "SendBarrier",
    "ShortTurns",
    "Simulation",
    "SocketUse",
    "SparkResults",
    "SparkRun",
    "SparkSource",
    "Speakers",
    "Spoken",
    "StepTask",
    "TaskManagerThreads",
    "ThreadedRun",
    "TlsStream",
    "TraceSender",
    "TraceTable",
    "Way",
    "Worker",
    "batches",
    "connect",
    "explain_failure",
    "explain_refusal",
    "let_pass",
    "listen",
    "makers_of",
    "may_be_tls",
    "needed_by",
    "obey",
    "pack",
    "portable",
    "reach",
    "resolve_address",
    "rest_after",
    "run_task_manager",
    "send_barriers",
    "ship",
    "show_address",
    "unpack",
    "wait_for_slots",
    "without_sinks",
]
