"""`sluice data`: what it lists, describes and makes, and what it says when it cannot."""

import io

import pytest

from course.cli import main
from course.data.datasets import DATA_SETS
from course.data.progress_bar import shows_progress


def test_list_names_every_table(capsys):
    assert main(["data", "list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(DATA_SETS)


@pytest.mark.spark
def test_describe_prints_the_page(spark, capsys):
    assert main(["data", "describe", "disorder", "--rows", "400", "--seed", "3", "--delays", "uniform"]) == 0
    printed = capsys.readouterr().out
    assert "400 rows, seed 3" in printed
    assert "lateness, ms" in printed
    assert "busiest of 4" in printed


@pytest.mark.spark
def test_make_and_verify(spark, tmp_path, capsys):
    folder = str(tmp_path / "plans")
    assert main(["data", "make", "plans", "--rows", "30", "--out", folder]) == 0
    assert "30 rows" in capsys.readouterr().out
    assert main(["data", "verify", folder]) == 0
    assert "30 rows, " in capsys.readouterr().out
    next((tmp_path / "plans").glob("*.parquet")).unlink()
    assert main(["data", "verify", folder]) == 1
    said = capsys.readouterr().err
    assert "is not whole" in said
    assert len(said.splitlines()) == 1


@pytest.mark.spark
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("describe nothing", 2, "there is no data set 'nothing'"),
        ("describe zipf --rows 0", 2, "zipf has 1 to 100000000 rows, not 0"),
        ("make zipf --rows 1000000000 --out x", 2, "zipf has 1 to 100000000 rows"),
        ("describe zipf --delays pareto", 2, "zipf has no option 'delays'"),
        ("verify nowhere", 1, "nowhere is no stored table: it does not exist"),
    ],
)
def test_trouble_is_one_line_and_a_status(spark, words, status, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["data", *words.split()]) == status
    printed = capsys.readouterr().err
    assert said in printed
    assert len(printed.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_what_is_quick_is_silent(spark):
    stream = io.StringIO()
    with shows_progress(spark, "counting", stream):
        spark.range(10).count()
    assert stream.getvalue() == ""
