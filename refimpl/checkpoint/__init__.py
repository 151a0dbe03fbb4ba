"""One cut of the whole job: what may start, what is under way, what counts, and what is kept."""

from refimpl.checkpoint.completed import *
from refimpl.checkpoint.coordinator import *
from refimpl.checkpoint.decider import *
from refimpl.checkpoint.decisions import *
from refimpl.checkpoint.failures import *
from refimpl.checkpoint.live_tasks import *
from refimpl.checkpoint.options import *
from refimpl.checkpoint.pending import *
from refimpl.checkpoint.periodic import *
from refimpl.checkpoint.reasons import *
from refimpl.checkpoint.snapshot import *
from refimpl.checkpoint.stats import *
from refimpl.checkpoint.stats_tracker import *
from refimpl.checkpoint.under_way import *
from refimpl.checkpoint.words import *
