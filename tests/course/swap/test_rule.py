"""A part that comes to the gate is the function its exercise asks for, or a class."""

from __future__ import annotations

from course.curriculum.specimens import Specimen
from course.swap.rule import part_of

SOURCE = """
class Note:
    pass


class Part(Note):
    pass


def wanted():
    return "the function"


def helper():
    return "another one"
"""


def test_a_function_is_found_by_its_name_and_a_class_as_the_last_one():
    specimen = Specimen("some_part", "", SOURCE)
    assert part_of(specimen, "wanted")() == "the function"
    assert part_of(specimen).__name__ == part_of(specimen, "get_next_record").__name__ == "Part"
