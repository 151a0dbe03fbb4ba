"""How the components of a cluster meet as processes: their messages on a wire, and what they keep on disk."""

from refimpl.drivers.cluster.client import *
from refimpl.drivers.cluster.cluster_node import *
from refimpl.drivers.cluster.cluster_processes import *
from refimpl.drivers.cluster.component_loop import *
from refimpl.drivers.cluster.dispatcher import *
from refimpl.drivers.cluster.job_master import *
from refimpl.drivers.cluster.mini_cluster import *
from refimpl.drivers.cluster.node_main import *
from refimpl.drivers.cluster.resource_manager import *
from refimpl.drivers.cluster.savepoints_asked import *
from refimpl.drivers.cluster.store_thread import *
from refimpl.drivers.cluster.task_manager import *
from refimpl.drivers.cluster.worker_launcher import *
