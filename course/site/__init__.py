"""The read-only site: the lessons as they are stored, to read before installing."""
