"""A learner's part in a running job, with ours behind it.

`into_job` puts it in and counts; `guard` takes it out again when it raises or stalls. The other modules know how each
kind of part goes in.
"""

from course.swap.guard import Guard
from course.swap.into_job import SwapReport, run

__all__ = ["Guard", "SwapReport", "run"]
