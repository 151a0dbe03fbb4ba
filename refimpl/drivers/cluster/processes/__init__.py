"""The cluster as processes: what each of them runs, and who starts, replaces and ends them."""

from refimpl.drivers.cluster.processes.cluster_processes import *
from refimpl.drivers.cluster.processes.node import *
from refimpl.drivers.cluster.processes.node_main import *
from refimpl.drivers.cluster.processes.node_options import *
from refimpl.drivers.cluster.processes.process_launcher import *
