"""Ways out of Spark: each brings every row, and one that does not is found out."""

from __future__ import annotations

import json
import queue
import socket
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from tests.bench.spark_ways import CHOSEN, WAYS, Way, as_table, main, push, run

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_partition_is_not_done_before_it_is_read() -> None:
    """Else the port could be closed while it waits to be accepted, and its rows would be gone."""
    done: queue.Queue[object] = queue.Queue()
    batch = pa.record_batch([pa.array(range(1_500))], ["a"])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        pusher = threading.Thread(target=lambda: done.put(list(push(port, iter([batch])))), daemon=True)
        pusher.start()
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as file:
            assert sum(each.num_rows for each in pa.ipc.open_stream(file)) == 1_500
            assert file.read() == b""
            assert done.empty()
            assert pusher.is_alive()
        assert len(done.get(timeout=120)) == 1
        pusher.join(120)


def test_all_ways_bring_all_rows(spark, tmp_path: Path, capsys) -> None:
    assert main(["--rows", "3000", "--rounds", "1", "--json", str(tmp_path / "ways.json")]) == 0
    answer = json.loads((tmp_path / "ways.json").read_text())
    assert [row["name"] for row in answer["ways"]] == [way.name for way in WAYS]
    assert all(row["rows_per_s"] > 0 for row in answer["ways"])
    assert answer["ways"][0]["times_collect"] == 1
    printed = capsys.readouterr().out
    assert as_table(answer["ways"]) in printed
    assert CHOSEN in printed


def test_a_way_that_loses_a_row_is_found_out(spark) -> None:
    lossy = Way("lossy", "", "", lambda frame: WAYS[2].take(frame.where("id > 0")))
    with pytest.raises(AssertionError, match="lossy brought"):
        run([lossy], rows=100, rounds=1, say=lambda _text: None)


@pytest.mark.parametrize("arguments", [["nothing"], ["--rounds", "0"], ["--rows", "0"]])
def test_wrong_use_is_status_2(arguments: list[str], capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
