"""Lines of texts with Chinese characters, which have no spaces and take two columns each."""

from __future__ import annotations

import random
import textwrap

import pytest

from course.curriculum.wrapping import cut, pad, pad_left, width, wrap

LETTERS = "缓冲区通道。，、；：？！（）《》“”…… aä`(),.:→  "
SENTENCE = "缓冲区（buffer）是一段引用，“段”是内存；先看 `serialize_record`，再看《名词》：谁在等？下游。"
NEVER_FIRST = "。，、；：？！）》”"
NEVER_LAST = "（《“"


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("abc", 3), ("缓冲", 4), ("a缓，", 5), ("✓ →", 3), ("e\u0301", 1)]
)
def test_a_chinese_character_takes_two_columns_and_a_combined_accent_none(text, columns):
    assert width(text) == columns


def test_texts_are_padded_and_cut_to_columns():
    assert pad("缓冲", 6) + "|" == "缓冲  |"
    assert pad_left("缓冲", 6) == "  缓冲"
    assert pad("long", 2) == pad_left("long", 2) == "long"
    assert [cut("a缓冲b", columns) for columns in range(7)] == ["", "a", "a", "a缓", "a缓", "a缓冲", "a缓冲b"]


def test_a_line_ends_between_two_chinese_characters():
    assert wrap("缓冲区缓冲区", 6) == ["缓冲区", "缓冲区"]
    assert wrap("缓冲区缓冲区", 8, "1 ", "  ") == ["1 缓冲区", "  缓冲区"]


def test_a_mark_stays_with_its_character():
    assert wrap("缓冲区，通道。", 6) == ["缓冲", "区，通", "道。"]
    assert wrap("缓冲（通道）", 6) == ["缓冲", "（通", "道）"]
    assert wrap("甲乙“丙”。", 7) == ["甲乙", "“丙”。"]


@pytest.mark.parametrize("columns", range(8, 60))
def test_no_line_is_too_long_or_begins_or_ends_with_the_wrong_mark_and_nothing_is_lost(columns):
    lines = wrap(SENTENCE, columns, "- ", "  ")
    assert max(map(width, lines)) <= columns
    assert "".join(lines).replace(" ", "") == "-" + SENTENCE.replace(" ", "")
    bodies = [line[2:] for line in lines]
    if columns >= len("- `serialize_record`，") + 1:  # what has no room on any line is broken anywhere
        assert not [line for line in bodies if line[0] in NEVER_FIRST or line[-1] in NEVER_LAST]


def test_a_latin_word_is_kept_whole_beside_chinese():
    lines = wrap(SENTENCE, 24)
    assert any("`serialize_record`" in line for line in lines)
    assert any("buffer" in line for line in lines)


def test_any_text_keeps_its_letters_and_its_room():
    seed = random.SystemRandom().randrange(1_000_000)
    generator = random.Random(seed)
    for _ in range(500):
        text = "".join(generator.choices(LETTERS, k=generator.randrange(1, 60)))
        columns = generator.randrange(6, 40)
        lines = wrap(text, columns, "x ", "  ")
        assert all(width(line) <= columns for line in lines), f"{seed=} {text!r} {columns}"
        assert "".join(lines).replace(" ", "").removeprefix("x") == "".join(text.split()), f"{seed=} {text!r} {columns}"


def test_a_text_without_wide_characters_is_wrapped_as_ever():
    text = "one two-three  four five's: a word that is longer than_the_whole_line_can_be → end"
    for columns in (12, 20, 40):
        wanted = textwrap.wrap(text, columns, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
        assert wrap(text, columns, "- ", "  ") == wanted
        assert wrap(text, columns, breaks_hyphens=True) == textwrap.wrap(text, columns)
    assert wrap("", 10) == []
