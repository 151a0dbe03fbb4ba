"""What a TaskManager does for a job: the place it has there, and the attempts of its regions as real tasks."""

from refimpl.drivers.cluster.tasks.deployed_tasks import *
from refimpl.drivers.cluster.tasks.job_place import *
from refimpl.drivers.cluster.tasks.words import *
