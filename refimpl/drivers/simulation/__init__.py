"""One step at a time, in an order you choose."""

from refimpl.drivers.simulation.actions import *
from refimpl.drivers.simulation.control_wire import *
from refimpl.drivers.simulation.data_moves import *
from refimpl.drivers.simulation.deployer import *
from refimpl.drivers.simulation.moves import *
from refimpl.drivers.simulation.policy import *
from refimpl.drivers.simulation.pressure import *
from refimpl.drivers.simulation.regions import *
from refimpl.drivers.simulation.run import *
from refimpl.drivers.simulation.wire import *
from refimpl.drivers.simulation.work import *
