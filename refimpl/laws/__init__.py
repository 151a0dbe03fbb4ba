"""The laws every run keeps, a file for each; `invariants` checks them on a whole system."""

from refimpl.laws.attempts import *
from refimpl.laws.backlog import *
from refimpl.laws.capture import *
from refimpl.laws.credit import *
from refimpl.laws.cut import *
from refimpl.laws.fairness import *
from refimpl.laws.fencing import *
from refimpl.laws.holders import *
from refimpl.laws.hunger import *
from refimpl.laws.liveness import *
from refimpl.laws.memory import *
from refimpl.laws.records import *
from refimpl.laws.segments import *
from refimpl.laws.slots import *
from refimpl.laws.state import *
from refimpl.laws.store import *
from refimpl.laws.timers import *
from refimpl.laws.transactions import *
