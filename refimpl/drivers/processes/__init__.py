"""A job on several processes of this machine."""

from refimpl.drivers.processes.attempt_checkpoints import *
from refimpl.drivers.processes.attempts import *
from refimpl.drivers.processes.child_process import *
from refimpl.drivers.processes.cluster import *
from refimpl.drivers.processes.group import *
from refimpl.drivers.processes.heartbeats import *
from refimpl.drivers.processes.messages import *
from refimpl.drivers.processes.pipe_sender import *
from refimpl.drivers.processes.regions import *
from refimpl.drivers.processes.remote_samples import *
from refimpl.drivers.processes.run import *
from refimpl.drivers.processes.sent_error import *
from refimpl.drivers.processes.sinks import *
from refimpl.drivers.processes.worker import *
from refimpl.drivers.processes.workers import *
