"""The version of the course, as `sluice --version` and a lesson say it."""

__version__ = "0.1.0"
