"""What the user wants: streams, the graphs they become, and the tasks that run them."""

from refimpl.job.blocking_results import *
from refimpl.job.chaining import *
from refimpl.job.checkpoint_trigger import *
from refimpl.job.commands import *
from refimpl.job.connected_streams import *
from refimpl.job.data_stream import *
from refimpl.job.deployment import *
from refimpl.job.distribution_pattern import *
from refimpl.job.edge_results import *
from refimpl.job.environment import *
from refimpl.job.exchange_mode import *
from refimpl.job.execution_graph import *
from refimpl.job.hot_swap import *
from refimpl.job.job_graph import *
from refimpl.job.keyed_stream import *
from refimpl.job.makers import *
from refimpl.job.parts import *
from refimpl.job.placement import *
from refimpl.job.regions import *
from refimpl.job.scheduling_modes import *
from refimpl.job.shuffle_environment import *
from refimpl.job.snapshots import *
from refimpl.job.stream_graph import *
from refimpl.job.task_factory import *
from refimpl.job.transformed import *
from refimpl.job.watermark_strategy import *
