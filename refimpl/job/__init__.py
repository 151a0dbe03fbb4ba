"""What the user wants: streams, the graphs they become, and the tasks that run them."""

from refimpl.job.chaining import build_chains, is_chainable
from refimpl.job.checkpoint_trigger import CheckpointTrigger
from refimpl.job.commands import Command, Pause, Resume, SetTimeout, Slow, Swap, SwapFunction
from refimpl.job.deployment import Deployment
from refimpl.job.execution_graph import (
    ChannelPlan,
    ExecutionGraph,
    ExecutionVertex,
    channels_of,
    required_input_buffers,
)
from refimpl.job.job_graph import JobEdge, JobGraph, JobVertex, reasons_not_to_chain
from refimpl.job.makers import Makers
from refimpl.job.parts import Parts
from refimpl.job.placement import Placement, check_num_task_managers
from refimpl.job.shuffle_environment import ConnectionId, RemoteRead, ShuffleEnvironment
from refimpl.job.snapshots import JobSnapshot, TaskManagerSnapshot
from refimpl.job.stream import (
    DataStream,
    KeyedStream,
    SplitStream,
    StreamEnvironment,
    WindowedStream,
)
from refimpl.job.stream_graph import (
    BROADCAST,
    FORWARD,
    GLOBAL,
    REBALANCE,
    RESCALE,
    SHUFFLE,
    ChainingStrategy,
    Partitioner,
    StreamEdge,
    StreamGraph,
    StreamNode,
)

__all__ = [
    "BROADCAST",
    "FORWARD",
    "GLOBAL",
    "REBALANCE",
    "RESCALE",
    "SHUFFLE",
    "ChainingStrategy",
    "ChannelPlan",
    "CheckpointTrigger",
    "Command",
    "ConnectionId",
    "DataStream",
    "Deployment",
    "ExecutionGraph",
    "ExecutionVertex",
    "JobEdge",
    "JobGraph",
    "JobSnapshot",
    "JobVertex",
    "KeyedStream",
    "Makers",
    "Partitioner",
    "Parts",
    "Pause",
    "Placement",
    "RemoteRead",
    "Resume",
    "SetTimeout",
    "ShuffleEnvironment",
    "Slow",
    "SplitStream",
    "StreamEdge",
    "StreamEnvironment",
    "StreamGraph",
    "StreamNode",
    "Swap",
    "SwapFunction",
    "TaskManagerSnapshot",
    "WindowedStream",
    "build_chains",
    "channels_of",
    "check_num_task_managers",
    "is_chainable",
    "reasons_not_to_chain",
    "required_input_buffers",
]
