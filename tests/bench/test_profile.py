"""The profile: its programs do what they say, and what a layer adds is the difference within a round."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import Lanes
from tests.bench import profile as module
from tests.bench.contenders import KIND, RECORDS, SEGMENT_BYTES, checksum
from tests.bench.measure import Figure, WrongAnswerError
from tests.bench.profile import LAYERS, as_table, cpu_ns, differences, main, segments

ARRIVING = [layer for layer in LAYERS if layer.move(10) is not None]


@pytest.mark.parametrize("layer", ARRIVING, ids=lambda layer: layer.name.replace(" ", "-"))
@pytest.mark.parametrize("num_records", [1, 1_130, 20_011])
def test_everything_arrives_whatever_the_layers(layer: module.Layer, num_records: int) -> None:
    assert layer.move(num_records) == checksum(num_records)


def test_from_decoding_on_every_program_is_checked() -> None:
    names = [layer.name for layer in LAYERS]
    assert [layer.name for layer in ARRIVING] == names[names.index("decode") :]


def test_what_is_packed_by_hand_is_what_the_engine_packs() -> None:
    pool = LocalBufferPool(NetworkBufferPool(1, SEGMENT_BYTES), 1, 1, "test", 1)
    builder, lanes = pool.request_builder(0), Lanes(KIND, 1, lambda *_: None)
    assert builder is not None
    lanes.open(0, builder)
    assert lanes.put[0](RECORDS[0])
    (data,) = (bytes(data) for data in segments(1))
    assert data == bytes(builder.memory[: builder.written_bytes])


def test_a_program_that_loses_something_has_no_cost() -> None:
    with pytest.raises(WrongAnswerError, match="the program 'operator' came to 7"):
        cpu_ns(replace(LAYERS[5], move=lambda _: 7), 10)


def test_a_layer_costs_the_difference_of_neighbours_in_the_same_round() -> None:
    """The machine was ten times slower in the second round: the difference of the medians would be 5."""
    (first, total), (second, _) = differences([[10, 30], [100, 300], [20, 25]])
    assert first == total == Figure(20, 10, 100)
    assert second == Figure(20, 5, 200)


@pytest.mark.slow
def test_the_table_names_all_layers_and_the_json_has_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "profile.json"
    assert main(["--rounds", "1", "--records", "2000", "--json", str(file)]) == 0
    shown = capsys.readouterr().out
    assert all(layer.name in shown and layer.where in shown for layer in LAYERS)
    answer = json.loads(file.read_text())
    assert answer["format"] == "sluice-profile/1"
    assert [line["layer"] for line in answer["layers"]] == [layer.name for layer in LAYERS]
    assert as_table(answer) in shown


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--records", "0"], ["--fast"]])
def test_wrong_use_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "error" in capsys.readouterr().err


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name.replace(" ", "-"))
def test_files_that_a_layer_names_are_there(layer: module.Layer) -> None:
    words = [word.strip(",:") for word in layer.where.split()]
    root = Path(module.__file__).parents[2] / "refimpl"
    assert all((root / word).exists() for word in words if word.endswith((".py", "/")))
