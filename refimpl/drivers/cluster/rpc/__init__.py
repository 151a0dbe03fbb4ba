"""How the processes of a cluster speak with each other: sealed connections, and envelopes on them in JSON."""

from refimpl.drivers.cluster.rpc.address import *
from refimpl.drivers.cluster.rpc.codec import *
from refimpl.drivers.cluster.rpc.inbox import *
from refimpl.drivers.cluster.rpc.incoming import *
from refimpl.drivers.cluster.rpc.json_form import *
from refimpl.drivers.cluster.rpc.outgoing import *
from refimpl.drivers.cluster.rpc.sealed_stream import *
from refimpl.drivers.cluster.rpc.secret import *
from refimpl.drivers.cluster.rpc.service import *
