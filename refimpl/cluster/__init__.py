"""Who decides for a job as a whole: whether it goes on after a failure, and when."""

from refimpl.cluster.restart import *
