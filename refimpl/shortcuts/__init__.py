"""The same bytes with less work: the last chapter, which can be deleted without loss.

Flink's JIT compiler turns the plain way into machine code. Here the same is done by hand: records of one width are
packed with one call, columns are written and read at once, whole buffers are handed on in runs.

The contract, which `tests/shortcuts/test_contract.py` keeps:
- A shortcut changes no byte, no event, no order, no count and no law.
- Each class stands for one of the book and says for which of its methods.
- A learner's part is never one of these classes, so it is asked for every record and every buffer.
- `FastMakers` is the one place that makes them, and `refimpl.drivers.makers` the one that chooses it.
"""

from refimpl.shortcuts.chain import *
from refimpl.shortcuts.channels import *
from refimpl.shortcuts.columnar_type import *
from refimpl.shortcuts.columns import *
from refimpl.shortcuts.deserializer import *
from refimpl.shortcuts.encoded_batch import *
from refimpl.shortcuts.fixed_width import *
from refimpl.shortcuts.forms import *
from refimpl.shortcuts.frames import *
from refimpl.shortcuts.input import *
from refimpl.shortcuts.lanes import *
from refimpl.shortcuts.makers import *
from refimpl.shortcuts.operators import *
from refimpl.shortcuts.partition import *
from refimpl.shortcuts.selectors import *
from refimpl.shortcuts.tables import *
from refimpl.shortcuts.task import *
from refimpl.shortcuts.turns import *
from refimpl.shortcuts.windows import *
from refimpl.shortcuts.writer import *
