"""Sluice: the course around the engine: command line, data, grading, lessons."""

__version__ = "0.1.0"
