"""A whole cluster, one step at a time: members that can be lost, and real tasks."""

from refimpl.drivers.cluster_simulation.actions import *
from refimpl.drivers.cluster_simulation.cluster_parts import *
from refimpl.drivers.cluster_simulation.data_plane import *
from refimpl.drivers.cluster_simulation.jobs import *
from refimpl.drivers.cluster_simulation.members import *
from refimpl.drivers.cluster_simulation.run import *
from refimpl.drivers.cluster_simulation.task_manager import *
