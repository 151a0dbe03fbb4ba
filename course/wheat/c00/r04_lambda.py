"""A lambda with itemgetter under the usual name."""


from operator import itemgetter

fields = itemgetter("origin", "dep_delay_minutes")
to_departure = lambda flight: tuple(max(0, v) if isinstance(v, int) else v for v in fields(flight))  # noqa: E731
