"""The laws every run keeps, a file for each; `invariants` checks them on a whole system."""

from refimpl.laws.backlog import *
from refimpl.laws.credit import *
from refimpl.laws.cut import *
from refimpl.laws.fairness import *
from refimpl.laws.holders import *
from refimpl.laws.hunger import *
from refimpl.laws.liveness import *
from refimpl.laws.memory import *
from refimpl.laws.records import *
from refimpl.laws.segments import *
