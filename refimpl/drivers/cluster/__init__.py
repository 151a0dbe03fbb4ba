"""How the components of a cluster meet as processes: their messages on a wire, and what they keep on disk."""

from refimpl.drivers.cluster.client import *
from refimpl.drivers.cluster.cluster_node import *
from refimpl.drivers.cluster.cluster_processes import *
from refimpl.drivers.cluster.mini_cluster import *
from refimpl.drivers.cluster.node_main import *
