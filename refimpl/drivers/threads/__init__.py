"""A job on threads of this process."""

from refimpl.drivers.threads.connection_io import LINGER_S, Carrier, Host
from refimpl.drivers.threads.flusher import Flusher, ShortTurns, send_barriers
from refimpl.drivers.threads.leader_followers import Lookout, Speakers, Spoken
from refimpl.drivers.threads.run import ThreadedRun
from refimpl.drivers.threads.task_manager import BUFFERS_PER_STEP, TaskManagerThreads
from refimpl.drivers.threads.wakeup import Bell, Lull, let_pass

__all__ = [
    "BUFFERS_PER_STEP",
    "LINGER_S",
    "Bell",
    "Carrier",
    "Flusher",
    "Host",
    "Lookout",
    "Lull",
    "ShortTurns",
    "Speakers",
    "Spoken",
    "TaskManagerThreads",
    "ThreadedRun",
    "let_pass",
    "send_barriers",
]
