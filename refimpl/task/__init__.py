"""Records are processed: operators, where their results go, and the task that drives them."""

from refimpl.task.broadcast_states import *
from refimpl.task.chain import *
from refimpl.task.checkpoints import *
from refimpl.task.co_operators import *
from refimpl.task.collectors import *
from refimpl.task.file_transactions import *
from refimpl.task.latency import *
from refimpl.task.merging_windows import *
from refimpl.task.operators import *
from refimpl.task.outputs import *
from refimpl.task.process_context import *
from refimpl.task.process_function import *
from refimpl.task.process_operators import *
from refimpl.task.snapshot import *
from refimpl.task.snapshot_decisions import *
from refimpl.task.snapshotting import *
from refimpl.task.source import *
from refimpl.task.task import *
from refimpl.task.time_service import *
from refimpl.task.timers import *
from refimpl.task.triggers import *
from refimpl.task.two_input_task import *
from refimpl.task.two_phase_sink import *
from refimpl.task.watermarks import *
from refimpl.task.window_assigners import *
from refimpl.task.window_operator import *
