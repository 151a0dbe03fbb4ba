"""Lesson 5: selectors and writers in many styles, and in the running job."""

from __future__ import annotations

import pytest

from course import swap
from course.curriculum.specimens import Specimen, right_answers, zoo
from course.figures.writing import bands, buffers_of_a_broadcast, departures, moved
from course.grading.judge import judge
from course.swap.rule import part_of
from refimpl.producer import ChannelCopy, KeyGroupSelector, key_group_of, operator_index_of

_SELECTOR = "from refimpl.producer import KeyGroupSelector, java_hash_code, murmur_hash\n"
_WRITER = right_answers("5.2")[0].source

RIGHT = {
    ("5.1", "floats_that_are_whole"): _SELECTOR + '''
import math

class Mine(KeyGroupSelector):
    def channel_of_key(self, key):
        code = java_hash_code(key, self.key_type)
        share = self.max_parallelism / self.num_channels
        group = murmur_hash(code) % self.max_parallelism
        guess = int(group / share)
        while guess * self.max_parallelism > group * self.num_channels:
            guess -= 1
        while (guess + 1) * self.max_parallelism <= group * self.num_channels:
            guess += 1
        return math.floor(guess)
''',
    ("5.1", "dict_of_groups"): _SELECTOR + '''
class Mine(KeyGroupSelector):
    _table = None

    @property
    def table(self):
        if self._table is None or len(self._table) != self.max_parallelism:
            owners = (g * self.num_channels // self.max_parallelism for g in range(self.max_parallelism))
            self._table = dict(enumerate(owners))
        return self._table

    def channel_of_key(self, key):
        match murmur_hash(java_hash_code(key, self.key_type)):
            case stirred:
                return self.table[stirred % self.max_parallelism]
''',
    ("5.1", "dataclass_and_mixin"): _SELECTOR + '''
from dataclasses import dataclass
from fractions import Fraction

@dataclass(frozen=True)
class Share:
    of: int
    among: int

    def owner(self, group: int) -> int:
        return int(Fraction(group, self.of) * self.among)

class Groups:
    def group(self, key):
        return murmur_hash(java_hash_code(key, self.key_type)) % self.max_parallelism

class Mine(Groups, KeyGroupSelector):
    def channel_of_key(self, key: object) -> int:
        return Share(self.max_parallelism, self.num_channels).owner(self.group(key))
''',
    ("5.2", "tries_and_generators"): '''
from refimpl.producer import ChannelCopy

class Waits(Exception):
    pass

class Mine(ChannelCopy):
    def opened(self, channel):
        while True:
            yield self.builders[channel] or self.open(channel)

    def copy_to_channels(self):
        self.full = 0
        try:
            while self.remaining:
                self.one(self.remaining[0])
                self.after_record(self.remaining.popleft())
                if self.remaining:
                    self.record.reset()
        except Waits:
            self.block()
            return False
        if self.full:
            self.record.prune()
        return True

    def one(self, channel):
        for builder in self.opened(channel):
            if builder is None:
                raise Waits
            result = self.record.copy_to_buffer_builder(builder)
            if result.is_full_buffer:
                self.full += 1
                self.close(channel)
            if result.is_full_record:
                return
''',
}  # fmt: skip

_RESET = "            self.record.reset()\n"
WRONG = {
    "resets_too_often": ("            if result.is_full_record:\n", _RESET + "            if result.is_full_record:\n"),
    "opens_each_time": ("self.builders[channel] or self.open(channel)", "self.open(channel)"),
    "never_opens": ("self.builders[channel] or self.open(channel)", "self.builders[channel]"),
    "takes_the_last": ("self.remaining.popleft()", "self.remaining.pop()"),
    "closes_on_partial_only": ("if result.is_full_buffer:", "if not result.is_full_record:"),
    "one_round_only": ("while self.remaining:", "if self.remaining:"),
    "raises_for_no_buffer": ("self.block()", "raise RuntimeError('no buffer')"),
    "announces_all": ("self.after_record(channel)", "self.partition.flush_all()"),
    "stops_after_one": ("self.after_record(channel)", "break"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("exercise", "name"), RIGHT)
def test_a_right_part_in_another_style_passes(exercise, name):
    report = judge(exercise, RIGHT[exercise, name], 7)
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_writer_is_turned_down(name):
    old, new = WRONG[name]
    assert old in _WRITER
    report = judge("5.2", _WRITER.replace(old, new, 1))
    assert not report.passed
    assert report.failed_rule.finding.code not in ("different", "vanished"), str(report)


# -- in the running job ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["simulation", "threads"])
@pytest.mark.parametrize(
    ("exercise", "part"),
    [
        ("5.1", KeyGroupSelector),
        ("5.2", ChannelCopy),
        *((e, part_of(s)) for e in ("5.1", "5.2") for s in right_answers(e)),
    ],
)
def test_a_right_part_loses_nothing(exercise, part, driver):
    report = swap.run(exercise, part, driver=driver, records=200, segment_size=32)
    assert (report.num_lost, report.is_equal, report.taken_out, report.error) == (0, True, (), "")
    assert report.num_calls > 0


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["simulation", "threads"])
@pytest.mark.parametrize(
    ("exercise", "line", "does", "why"),
    [
        ("5.1", "        return group", "        return 9 if key else group", "IndexError: there is no channel 9"),
        ("5.1", "        return group", "        return None if key else group", "TypeError: "),
        ("5.2", "        filled = False", "        filled = 1 / 0", "ZeroDivisionError"),
    ],
)  # fmt: skip
def test_a_part_that_fails_is_taken_out_and_nothing_is_lost(exercise, line, does, why, driver):
    source = right_answers(exercise)[0].source
    assert line in source
    report = swap.run(exercise, part_of(Specimen("fails", "", source.replace(line, does, 1))), driver=driver)
    assert report.taken_out[0].startswith(why)
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")


def test_keys_that_go_elsewhere_are_seen_in_the_answer():
    (salted,) = [each for each in zoo("5.1") if each.name == "w03_hash_modulo"]
    report = swap.run("5.1", part_of(salted), records=400)
    assert (report.num_lost, report.is_equal) == (0, False)


# -- figures -----------------------------------------------------------------------------------------


def test_figures_are_what_the_engine_does():
    shown = bands({"JFK": 3, "EWR": 2}, 128, 4)
    channel = operator_index_of(key_group_of("JFK", 128), 128, 4)
    assert f"JFK (group {key_group_of('JFK', 128)})" in shown.lines[channel + 1]
    assert [line.split()[1] for line in buffers_of_a_broadcast(8, 4).lines] == ["8", "2"]
    assert len(moved(range(100), 4, 5).lines) == 2
    lines = departures().lines
    assert [" not told" not in line for line in lines] == [False, True, False, True, False, True]
    assert [line.split(" takes ")[1] for line in lines if " takes " in line] == [
        "13 bytes",
        "39 bytes, then 13 bytes",
        "13 bytes, then the event",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["key_group_of", "operator_index_of", "key_group_range"])
def test_what_would_be_the_answer_under_another_name_is_not_there(name):
    source = (
        f"from refimpl.producer import KeyGroupSelector, {name}\n\n\n"
        f"class Mine(KeyGroupSelector):\n    def channel_of_key(self, key):\n        return {name}(key, 128, 4)\n"
    )
    assert judge("5.1", source).failed_rule.finding.code == "reference_part"


@pytest.mark.slow
def test_the_class_alone_is_not_an_answer():
    for exercise, base in (("5.1", "KeyGroupSelector"), ("5.2", "ChannelCopy")):
        source = f"from refimpl.producer import {base}\n\n\nclass Mine({base}):\n    pass\n"
        assert judge(exercise, source).failed_rule.finding.code == "missing_method"
