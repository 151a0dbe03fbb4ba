"""Two byte strings: where they differ first, what would explain the rest, and who has ended."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.errors import LocalUsageError
from refimpl.memory import DataType, heap_buffer
from widgets import BytesBesideFlink, bytes_model

DATA = b"\0\0\0\5hello\0\0\0\2to and some more text, long enough for several rows of sixteen bytes each"


def test_the_first_difference_has_its_offset_both_values_and_a_caret():
    changed = bytearray(DATA)
    changed[20] ^= 0xFF
    view = BytesBesideFlink(bytes(changed), DATA)
    lines = repr(view).splitlines()
    assert f"first difference at byte 20 (0x14): yours {changed[20]:02x}, Flink {DATA[20]:02x}" in lines
    caret = next(number for number, line in enumerate(lines) if line.strip() == "^^")
    at = lines[caret].index("^")
    assert lines[caret - 2][at : at + 2] == f"{changed[20]:02x}"
    assert lines[caret - 1][at : at + 2] == f"{DATA[20]:02x}"
    assert lines[caret - 1].endswith("and·some·more·te")
    view.close()


@pytest.mark.parametrize(
    ("yours", "hint"),
    [
        (DATA[:9] + b"\xff\xff\xff" + DATA[9:], "without these 3 bytes at byte 9 the rest would be the same"),
        (DATA[:30] + DATA[31:], "with this one byte more at byte 30"),
        (b"\5\0\0\0" + DATA[4:], "bytes 0 to 4: the same, the other way round: big-endian and little-endian"),
        (DATA[:9] + b"\2\0\0\0" + DATA[13:], "bytes 9 to 13: the same, the other way round"),
        (DATA[:50] + b"?" + DATA[51:], ""),
        (DATA[:-1], ""),
        (DATA, ""),
    ],
)
def test_one_change_that_explains_the_rest_is_said(yours, hint):
    found = bytes_model(yours, DATA)["hint"]
    assert hint in found
    assert bool(hint) == bool(found)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_what_is_called_the_first_difference_is_it(yours, flinks):
    model = bytes_model(yours, flinks)
    at = model["difference_bytes"]
    if at < 0:
        assert yours == flinks
        assert model["num_differences"] == 0
    else:
        assert yours[:at] == flinks[:at]
        assert yours[at : at + 1] != flinks[at : at + 1]
    assert len(model["hint"]) < 200


@given(st.binary(min_size=8, max_size=40), st.integers(0, 39), st.binary(min_size=1, max_size=9))
def test_a_hint_is_true(data, at, more):
    at %= len(data)
    model = bytes_model(data[:at] + more + data[at:], data)
    if "without" in model["hint"]:
        start = model["difference_bytes"]
        num_moved = len(more)
        mine = data[:at] + more + data[at:]
        assert mine[:start] + mine[start + num_moved :] == data


def test_who_has_ended_and_what_comes_there():
    assert bytes_model(DATA[:20], DATA)["sentence"] == (
        f"byte 20: yours ends here, Flink has {len(DATA) - 20} more, from {DATA[20]:02x} on"
    )
    assert "byte 20: theirs ends here, mine has" in bytes_model(DATA, DATA[:20], ("mine", "theirs"))["sentence"]
    assert bytes_model(b"", b"")["sentence"] == "no difference in 0 bytes"


def test_each_difference_is_a_frame():
    changed = bytearray(DATA)
    for at in (3, 40, 41, 70):
        changed[at] ^= 1
    view = BytesBesideFlink(bytes(changed), DATA)
    frames = json.loads(view._frames)
    assert len(frames["changes"]) + 1 == 3
    assert [view.model_of(*moment, {})["difference_bytes"] for moment in view.recording.moments] == [3, 40, 70]
    assert view._at == 0
    view.close()


def test_buffers_hex_and_bytes_are_taken():
    for given_ in (DATA.hex(" "), bytearray(DATA), memoryview(DATA), heap_buffer(DATA, DataType.DATA)):
        view = BytesBesideFlink(given_, DATA)
        assert "no difference" in repr(view)
        view.close()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("0g", b""), {}, "yours='0g' is no hex"),
        ((b"", 3), {}, "flinks is a int; give bytes"),
        ((b"", b""), {"names": "ab"}, "names='ab': give two"),
        ((b"", b""), {"name": ("a", "b")}, "did you mean 'names'"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, options, message):
    with pytest.raises(LocalUsageError, match=message):
        BytesBesideFlink(*arguments, **options)


def test_none_begins_with_the_first_difference():
    view = BytesBesideFlink(b"abc", b"xby", at=None)
    assert "difference 1 of 2" in repr(view)
    view.close()


def test_long_strings_with_many_differences_stay_small():
    view = BytesBesideFlink(bytes(range(256)) * 400, bytes(range(255, -1, -1)) * 400)
    assert len(view._frames) < 200_000
    view.close()
    view = BytesBesideFlink(bytes(100_000), bytes([0, 1]) * 50_000)
    assert len(view.recording) == 200
    assert "difference 1 of 50000" in repr(view)
    assert len(view._frames) < 500_000
    view.close()
