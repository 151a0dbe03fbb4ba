"""A record becomes bytes, and bytes become a record."""

from refimpl.records.any_type import *
from refimpl.records.compression import *
from refimpl.records.element_serializer import *
from refimpl.records.elements import *
from refimpl.records.event_serializer import *
from refimpl.records.events import *
from refimpl.records.serialization_result import *
from refimpl.records.spanning import *
from refimpl.records.spill_file import *
from refimpl.records.types import *
from refimpl.records.vectorized import *
