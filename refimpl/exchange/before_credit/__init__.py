"""The way before credits: when one channel has no room, its whole connection stops.

Flink's only way up to 1.4, and up to 1.9 with `credit_based` off, at both ends. It has two rules:

- A producer sends what it has, for as long as the transport takes it. Nobody asks for anything.
- A consumer that has no buffer for what has come stages it, and reads nothing more from that
  connection, for no channel, until it has one. Then it goes on where it stopped.

No message says how much room there is, and no buffer waits for data that may not come. The price is
paid by the neighbours:

    producers        one connection: first come, first read          consumers
    a --+                                                        +-->  a  has room, gets nothing
    b --+-->  c4 b4 a4 c3 b3 a3 ...  b2 a2  [c1]  --------------+-->  b  has room, gets nothing
    c --+                            staged behind c1            +-->  c  has no buffer for c1

What stands behind c1 has room where it goes, and does not get there. All three now move at the pace
of the slowest, events too: a barrier for a that stands behind c1 waits for the task that reads c.

Nobody says "stop". Each part finds that it cannot go on, from the slow task back to every producer:

    the gate's pool is empty          c1 waits in the pool's line               `PoolBuffers`
    the connection is not read        the transports fill up, at both ends      (TCP's window)
    what was handed out is unwritten  above the high mark no more is given out  `WaterMarks`
    buffers stay in subpartitions     the producers' pools are empty            `LocalBufferPool`

The frames are those of the version in use, credit field and all; only what they mean is old.

With credits (see `credit`) the same task stops its own channel only, and none of that channel's data
is on the wire meanwhile. That costs a message more, and buffers that each channel keeps for itself.

The classes here stand in the place of those of the credit way, chosen where a job is deployed (`Makers`).
"""

from refimpl.exchange.before_credit.marked_connection import *
from refimpl.exchange.before_credit.pool_buffers import *
from refimpl.exchange.before_credit.pooled_channel import *
from refimpl.exchange.before_credit.staging import *
from refimpl.exchange.before_credit.water_marks import *
