"""What outlives a failure: state by key, by subtask and in time, its bytes, and where they are kept."""

from refimpl.state.assignment import *
from refimpl.state.channel_state import *
from refimpl.state.key_groups_of_state import *
from refimpl.state.keyed_state import *
from refimpl.state.layout import *
from refimpl.state.manifest import *
from refimpl.state.operator_state import *
from refimpl.state.recovery import *
from refimpl.state.retention import *
from refimpl.state.sections import *
from refimpl.state.soundness import *
from refimpl.state.state_types import *
from refimpl.state.store import *
from refimpl.state.subtask_state import *
