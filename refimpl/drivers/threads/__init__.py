"""A job on threads of this process."""

from refimpl.drivers.threads.connection_io import LINGER_S, ConnectionIO, ConnectionOwner
from refimpl.drivers.threads.connections import TaskManagerConnections
from refimpl.drivers.threads.flusher import keep_flushing, send_barriers
from refimpl.drivers.threads.handoff import Handoff
from refimpl.drivers.threads.leader_followers import LeaderFollowers
from refimpl.drivers.threads.run import ThreadedRun
from refimpl.drivers.threads.switch_interval import SwitchInterval
from refimpl.drivers.threads.task_manager import BUFFERS_PER_STEP, TaskManagerThreads
from refimpl.drivers.threads.turns import TaskTurns
from refimpl.drivers.threads.wakeup import Waker, let_pass

__all__ = [
    "BUFFERS_PER_STEP",
    "LINGER_S",
    "ConnectionIO",
    "ConnectionOwner",
    "Handoff",
    "LeaderFollowers",
    "SwitchInterval",
    "TaskManagerConnections",
    "TaskManagerThreads",
    "TaskTurns",
    "ThreadedRun",
    "Waker",
    "keep_flushing",
    "let_pass",
    "send_barriers",
]
