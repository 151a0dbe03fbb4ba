"""A receipt is checked by running everything in it again."""

from __future__ import annotations

import json

import pytest

from course.curriculum import stubs
from course.grading.judge import judge
from course.learner import progress
from course.learner.receipts import ReceiptError, make_receipt, verify

pytestmark = pytest.mark.usefixtures("own_state")


@pytest.fixture
def receipt(tmp_path):
    source = stubs.solution("0.1")
    report = judge("0.1", source, 5)
    progress.keep_attempt("0.1", source)
    progress.record("check", exercise="0.1", status="passed", code_hash=report.code_hash, seed=5)
    progress.keep_attempt("0.1", "broken")
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(make_receipt()))
    return file


def changed(file, **fields):
    receipt = json.loads(file.read_text())
    receipt["entries"][0].update(fields)
    file.write_text(json.dumps(receipt))
    return verify(file)


def test_a_receipt_of_the_last_passing_source_holds(receipt):
    holds, lines = verify(receipt)
    assert holds
    assert lines == ["✓ 0.1: passed again, 8 rules, seed 5"]


def test_another_source_is_noticed(receipt):
    holds, lines = changed(receipt, source="def to_departure(flight):\n    return None\n")
    assert not holds
    assert "not the one the code hash was made from" in lines[0]


def test_an_invented_pass_is_noticed(receipt):
    from course.grading.judge import code_hash

    wrong = "def to_departure(flight):\n    return None\n"
    holds, lines = changed(receipt, source=wrong, code_hash=code_hash(wrong))
    assert not holds
    assert "recorded as passed, now failed" in lines[0]


def test_an_empty_receipt_does_not_hold(tmp_path):
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(make_receipt()))
    assert verify(file)[0] is False


@pytest.mark.parametrize("text", ["", "[]", '{"format": "other"}', '{"format": "sluice-receipt/1", "entries": 3}'])
def test_what_is_no_receipt_is_refused(tmp_path, text):
    file = tmp_path / "receipt.json"
    file.write_text(text)
    with pytest.raises(ReceiptError):
        verify(file)


@pytest.mark.parametrize("entry", [None, {}, {"exercise": "9.9"}, {"exercise": "0.1", "source": 3}])
def test_a_damaged_entry_does_not_hold(receipt, entry):
    data = json.loads(receipt.read_text())
    data["entries"] = [entry]
    receipt.write_text(json.dumps(data))
    assert verify(receipt)[0] is False
