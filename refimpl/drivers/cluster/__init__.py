"""How the components of a cluster meet as processes: their messages on a wire, and what they keep on disk."""

from refimpl.drivers.cluster.client import *
from refimpl.drivers.cluster.mini_cluster import *
