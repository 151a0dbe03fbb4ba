"""A job on a Spark cluster."""

from refimpl.drivers.spark.barrier_task import *
from refimpl.drivers.spark.completion import *
from refimpl.drivers.spark.executors import *
from refimpl.drivers.spark.fed_source import *
from refimpl.drivers.spark.job_master import *
from refimpl.drivers.spark.kept_results import *
from refimpl.drivers.spark.results import *
from refimpl.drivers.spark.rows import *
from refimpl.drivers.spark.run import *
from refimpl.drivers.spark.stage import *
from refimpl.drivers.spark.try_checkpoints import *
from refimpl.drivers.spark.words import *
