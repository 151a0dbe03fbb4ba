"""What outlives a failure: state by key, by subtask and in time, its bytes, and where they are kept."""

from refimpl.state.key_groups_of_state import *
from refimpl.state.keyed_state import *
from refimpl.state.state_types import *
