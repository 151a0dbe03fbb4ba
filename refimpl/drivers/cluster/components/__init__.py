"""The components of a cluster, each with its driver, and the one thread that those of a process live on."""

from refimpl.drivers.cluster.components.component_loop import *
from refimpl.drivers.cluster.components.dispatcher import *
from refimpl.drivers.cluster.components.job_master import *
from refimpl.drivers.cluster.components.resource_manager import *
from refimpl.drivers.cluster.components.savepoints_asked import *
from refimpl.drivers.cluster.components.store_thread import *
from refimpl.drivers.cluster.components.task_manager import *
from refimpl.drivers.cluster.components.workers import *
