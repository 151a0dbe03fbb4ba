"""A job on threads of this process."""

from refimpl.drivers.threads.connection_io import *
from refimpl.drivers.threads.connections import *
from refimpl.drivers.threads.flusher import *
from refimpl.drivers.threads.handoff import *
from refimpl.drivers.threads.job_memory import *
from refimpl.drivers.threads.leader_followers import *
from refimpl.drivers.threads.regions import *
from refimpl.drivers.threads.run import *
from refimpl.drivers.threads.switch_interval import *
from refimpl.drivers.threads.task_manager import *
from refimpl.drivers.threads.task_managers import *
from refimpl.drivers.threads.turns import *
from refimpl.drivers.threads.wakeup import *
