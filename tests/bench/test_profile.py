"""The profile: its programs do what they say, and what a layer adds is the difference within a round."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.shortcuts.columns import BatchCodec
from refimpl.shortcuts.fixed_width import RecordPacker
from refimpl.shortcuts.lanes import Lanes
from tests.bench import batch_layers
from tests.bench import profile as module
from tests.bench.contenders import BATCH, KIND, RECORDS, SEGMENT_BYTES, checksum
from tests.bench.layers import Layer, Outcome
from tests.bench.measure import Figure, WrongAnswerError
from tests.bench.profile import LAYERS, UNITS, as_table, before, cpu_ns, differences, main, segments

NUM_SILENT = {"record": 4, "batch": 5}  # layers that move nothing to its end


@pytest.mark.parametrize("layer", LAYERS[NUM_SILENT["record"] :], ids=lambda layer: layer.name.replace(" ", "-"))
@pytest.mark.parametrize("num_records", [1, 1_130, 20_011])
def test_every_record_arrives_whatever_the_layers(layer: Layer, num_records: int) -> None:
    assert layer.move(num_records) == Outcome(num_records, checksum(num_records))


@pytest.mark.parametrize(
    "layer", batch_layers.LAYERS[NUM_SILENT["batch"] :], ids=lambda layer: layer.name.replace(" ", "-")
)
@pytest.mark.parametrize("num_batches", [1, 2, 43])
def test_every_batch_arrives_whatever_the_layers(layer: Layer, num_batches: int) -> None:
    outcome = layer.move(num_batches * BATCH - 5)
    assert outcome is not None
    assert (outcome.num_records, outcome.total) == (num_batches * BATCH, checksum(num_batches * BATCH))
    assert (outcome.cpu_s is not None) == (layer.name in ("hand-over", "processes"))


@pytest.mark.parametrize("unit", UNITS)
def test_from_the_first_that_delivers_on_every_program_is_checked(unit: str) -> None:
    outcomes = [layer.move(10) for layer in UNITS[unit].layers]
    assert [outcome is None for outcome in outcomes] == [
        place < NUM_SILENT[unit] for place in range(len(UNITS[unit].layers))
    ]


def test_what_is_copied_of_a_batch_are_the_bytes_of_its_rows() -> None:
    copied = [b"".join(pieces) for pieces in batch_layers.cut(BatchCodec(KIND), 2 * BATCH)]
    assert copied == [bytes(rows.view(np.uint8)) for rows in batch_layers.encoded(BatchCodec(KIND), 2 * BATCH)]


def test_what_is_packed_by_hand_is_what_the_engine_packs() -> None:
    pool = LocalBufferPool(NetworkBufferPool(1, SEGMENT_BYTES), 1, 1, "test", 1)
    builder, lanes = pool.request_builder(0), Lanes(RecordPacker.of(KIND), 1, lambda *_: None)
    assert builder is not None
    lanes.open(0, builder)
    assert lanes.put[0](RECORDS[0])
    (data,) = (bytes(data) for data in segments(1))
    assert data == bytes(builder.memory[: builder.written_bytes])


def test_a_program_that_loses_something_has_no_cost() -> None:
    with pytest.raises(WrongAnswerError, match="the program 'operator' came to 7"):
        cpu_ns(replace(LAYERS[5], move=lambda n: Outcome(n, 7)), 10)


def test_what_a_program_says_of_its_work_counts_and_so_do_the_records_it_moved() -> None:
    """Two processes worked 3 us for 30 records, though 10 were asked for."""
    assert cpu_ns(replace(LAYERS[5], move=lambda _: Outcome(30, checksum(30), 3e-6)), 10) == pytest.approx(100)


def test_a_layer_is_put_on_the_one_it_names_or_on_the_one_before() -> None:
    one, two, three = (Layer(name, "", lambda _: None) for name in ("one", "two", "three"))
    assert before([one, two, three, replace(three, name="four", after="two")]) == [None, 0, 1, 1]


def test_a_layer_costs_the_difference_of_neighbours_in_the_same_round() -> None:
    """The machine was ten times slower in the second round: the difference of the medians would be 5."""
    (first, total), (second, _) = differences([[10, 30], [100, 300], [20, 25]], [None, 0])
    assert first == total == Figure(20, 10, 100)
    assert second == Figure(20, 5, 200)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_the_table_names_all_layers_and_the_json_has_the_same(
    unit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "profile.json"
    layers = UNITS[unit].layers
    assert main([unit, "--rounds", "1", "--records", "2000", "--json", str(file)]) == 0
    shown = capsys.readouterr().out
    assert all(layer.name in shown and layer.where in shown for layer in layers)
    assert f"adds, {UNITS[unit].sign}" in shown
    answer = json.loads(file.read_text())
    assert answer["format"] == "sluice-profile/2"
    assert [(line["layer"], line["after"]) for line in answer["layers"]] == [(each.name, each.after) for each in layers]
    assert as_table(answer) in shown


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--records", "0"], ["--fast"], ["batches"]])
def test_wrong_use_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "error" in capsys.readouterr().err


@pytest.mark.parametrize("layer", [*LAYERS, *batch_layers.LAYERS], ids=lambda layer: layer.name.replace(" ", "-"))
def test_files_that_a_layer_names_are_there(layer: Layer) -> None:
    words = [word.strip(",:") for word in layer.where.split()]
    root = Path(module.__file__).parents[2] / "refimpl"
    assert all((root / word).exists() for word in words if word.endswith((".py", "/")))
