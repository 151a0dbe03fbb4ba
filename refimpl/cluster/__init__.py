"""Who decides for a job as a whole, who has a slot for it, who leads, and who still lives."""

from refimpl.cluster.back_pressure import *
from refimpl.cluster.bottleneck import *
from refimpl.cluster.dispatcher import *
from refimpl.cluster.endpoint import *
from refimpl.cluster.executions import *
from refimpl.cluster.failover import *
from refimpl.cluster.fencing import *
from refimpl.cluster.heartbeat import *
from refimpl.cluster.job_master import *
from refimpl.cluster.job_status import *
from refimpl.cluster.leader import *
from refimpl.cluster.messages import *
from refimpl.cluster.registration import *
from refimpl.cluster.resource_manager import *
from refimpl.cluster.restart import *
from refimpl.cluster.scheduler import *
from refimpl.cluster.slot_manager import *
from refimpl.cluster.slot_pool import *
from refimpl.cluster.slot_table import *
from refimpl.cluster.slots import *
from refimpl.cluster.task_executor import *
