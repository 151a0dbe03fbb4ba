"""A job on several processes of this machine."""

from refimpl.drivers.processes.child_process import *
from refimpl.drivers.processes.group import *
from refimpl.drivers.processes.messages import *
from refimpl.drivers.processes.run import *
from refimpl.drivers.processes.sent_error import *
from refimpl.drivers.processes.worker import *
