"""A part that raises nothing when it is made is right."""


def rule(read):
    return callable(read)
