"""What outlives a process of a cluster: who leads, and on disk leases, jobs and the secret."""

from refimpl.drivers.cluster.high_availability.cluster_folder import *
from refimpl.drivers.cluster.high_availability.election import *
from refimpl.drivers.cluster.high_availability.job_folder import *
from refimpl.drivers.cluster.high_availability.leaders import *
from refimpl.drivers.cluster.high_availability.leases import *
from refimpl.drivers.cluster.high_availability.stored_leaders import *
