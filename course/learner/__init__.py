"""What runs for a learner: the notebook, hints, progress, this machine, and membership in a class."""
