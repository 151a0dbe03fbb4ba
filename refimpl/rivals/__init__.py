"""How others push back, as pure machines, and a race of all of them with the engine under one workload."""

from refimpl.rivals.atm import *
from refimpl.rivals.bounded_queue import *
from refimpl.rivals.coordination import *
from refimpl.rivals.jstorm import *
from refimpl.rivals.measures import *
from refimpl.rivals.race import *
from refimpl.rivals.rival import *
from refimpl.rivals.signs import *
from refimpl.rivals.sluice import *
from refimpl.rivals.spark_rate import *
from refimpl.rivals.storm import *
from refimpl.rivals.wins import *
from refimpl.rivals.workload import *
