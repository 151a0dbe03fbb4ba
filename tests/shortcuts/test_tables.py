"""Keyed state that becomes bytes a column at a time: the same bytes, and the same refusals, as entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.makers import makers_of
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.records import ANY, BOOLEAN, BYTES, DOUBLE, INT, LONG, STRING, TupleType, TypeSerializer
from refimpl.shortcuts import tables
from refimpl.shortcuts.task import FastSubtaskCheckpoints
from refimpl.state import VOID, KeyedStateBackend, MemoryStore, StateTable, write_table
from refimpl.task import (
    TIME_WINDOW,
    FunctionContext,
    KeyedProcessFunction,
    ProcessContext,
    TimeWindow,
)

PLAIN = st.text(st.characters(max_codepoint=127), max_size=300) | st.sampled_from(
    ["", "a\0", "a", "x" * 127, "x" * 126]
)
EVEN = st.text(st.sampled_from("ab"), min_size=3, max_size=3)
ODD_TEXT = st.sampled_from(["€", "é", "\U0001f600", "\ud800"])
LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
WINDOW = st.builds(TimeWindow, INTS, INTS)

KEYS: list[tuple[TypeSerializer, st.SearchStrategy[Any]]] = [
    (LONG, LONGS), (INT, INTS), (STRING, PLAIN), (STRING, PLAIN | ODD_TEXT), (STRING, EVEN), (BOOLEAN, st.booleans()),
    (DOUBLE, st.floats()), (TupleType(STRING, LONG), st.tuples(EVEN, LONGS)), (BYTES, st.binary(max_size=5)),
    (TupleType(INT, DOUBLE), st.tuples(INTS, st.floats())), (ANY, LONGS | PLAIN | st.booleans()),
]  # fmt: skip
VALUES: list[tuple[TypeSerializer, st.SearchStrategy[Any]]] = [
    (LONG, LONGS), (INT, INTS), (DOUBLE, st.floats()), (BOOLEAN, st.booleans()), (STRING, PLAIN), (STRING, EVEN),
    (STRING, EVEN | ODD_TEXT | st.none()), (TupleType(LONG, STRING, TupleType(STRING, BOOLEAN)),
    st.tuples(LONGS, PLAIN, st.tuples(EVEN, st.booleans()))), (ANY, PLAIN | LONGS), (TupleType(), st.just(())),
]  # fmt: skip
NAMESPACES: list[tuple[TypeSerializer, st.SearchStrategy[Any]]] = [
    (VOID, st.none()),
    (LONG, LONGS),
    (TIME_WINDOW, WINDOW),
]
WRONG: list[object] = [2**63, -(2**31) - 1, True, 1, 1.0, "x", None, (1, "x"), ("x",), b"x", [1]]


def outcome(write: Callable[..., tuple[bytes, ...]], *arguments: object) -> tuple[bytes, ...] | str:
    try:
        return write(*arguments)
    except LocalUsageError as error:
        return str(error)


@st.composite
def filled(draw: st.DrawFn) -> tuple[StateTable[Any], TypeSerializer]:
    (key_type, keys), (value_type, values) = draw(st.sampled_from(KEYS)), draw(st.sampled_from(VALUES))
    namespace_type, namespaces = draw(st.sampled_from(NAMESPACES))
    table: StateTable[Any] = StateTable("t", value_type, namespace_type)
    for key, namespace, value in draw(st.lists(st.tuples(keys, namespaces, values), max_size=12)):
        table.put(key, namespace, value)
    return table, key_type


@pytest.fixture(autouse=True)
def few_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_FEW", 1)
    monkeypatch.setattr(tables, "_AT_ONCE", 5)  # and several chunks are soon there


@given(filled(), st.sampled_from([1, 7, 128, 32768]))
def test_the_bytes_are_those_of_entry_by_entry(made: tuple[StateTable[Any], TypeSerializer], groups: int) -> None:
    table, key_type = made
    own = (table, key_type, range(groups), groups)
    assert outcome(tables.write_table_at_once, *own) == outcome(write_table, *own)


@given(filled(), st.integers(0, 12), st.sampled_from(WRONG), st.booleans())
def test_what_is_of_another_type_is_refused_in_the_same_words(
    made: tuple[StateTable[Any], TypeSerializer], place: int, wrong: Any, is_value: bool
) -> None:
    table, key_type = made
    if is_value and len(table):
        key, namespace, _ = [*table.items()][place % len(table)]
        table.put(key, namespace, wrong)
    elif not isinstance(wrong, list):
        table.put(wrong, None, "value")
    own = (table, key_type, range(128), 128)
    assert outcome(tables.write_table_at_once, *own) == outcome(write_table, *own)


def test_a_key_of_others_is_named_as_ever() -> None:
    table: StateTable[Any] = StateTable("t", LONG, VOID)
    for key in range(40):
        table.put(key, None, key)
    for own in (range(64), range(64, 128)):
        said = outcome(tables.write_table_at_once, table, LONG, own, 128)
        assert said == outcome(write_table, table, LONG, own, 128)
        assert "was its record sent here by another key?" in said


def test_a_namespace_where_there_is_none_is_refused_as_ever() -> None:
    table: StateTable[Any] = StateTable("t", LONG, VOID)
    for key in range(9):
        table.put(key, None, key)
    table.put(4, "a window", 4)
    own = (table, LONG, range(128), 128)
    assert outcome(tables.write_table_at_once, *own) == outcome(write_table, *own)
    assert "and this state has none" in outcome(write_table, *own)


def test_entries_without_a_byte_are_none_in_any_key_group() -> None:
    table: StateTable[Any] = StateTable("t", TupleType(), VOID)
    table.put((), None, ())
    own = (table, TupleType(), range(128), 128)
    assert tables.write_table_at_once(*own) == write_table(*own) == (b"",) * 128


def test_columns_are_made_of_numbers_and_texts_of_many_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """And of these nothing is left to the book."""
    monkeypatch.setattr(tables, "write_table", lambda *_: pytest.fail("this has columns"))
    for value_type, value_of in [
        (LONG, int),
        (STRING, str),
        (TupleType(STRING, DOUBLE), lambda n: (f"{n:04d}", n / 2)),
    ]:
        for key_type, key_of in [(LONG, int), (STRING, str), (TupleType(LONG, STRING), lambda n: (n, str(n)))]:
            table: StateTable[Any] = StateTable("t", value_type, VOID)
            for number in range(300):
                table.put(key_of(number), None, value_of(number))
            own = (table, key_type, range(128), 128)
            assert tables.write_table_at_once(*own) == write_table(*own)


def test_tasks_that_take_shortcuts_write_tables_at_once_and_others_do_not() -> None:
    for shortcuts in (False, True):
        makers = makers_of(Config(shortcuts=shortcuts))
        for task in (makers.task, makers.two_input_task):
            assert (task.make_checkpoints._write_table is tables.write_table_at_once) is shortcuts
            assert issubclass(task.make_checkpoints, FastSubtaskCheckpoints) is shortcuts


class Adding(KeyedProcessFunction):
    def open(self, context: FunctionContext) -> None:
        self.sum = context.reducing_state("sum", lambda a, b: a + b, LONG)

    def process_element(self, value: int, ctx: ProcessContext) -> Iterable[int]:
        self.sum.add(value)
        return (self.sum.get(),)


def test_a_checkpoint_of_a_job_is_the_same_file_both_ways() -> None:
    files = []
    for shortcuts in (False, True):
        store = MemoryStore()
        config = Config(shortcuts=shortcuts, checkpoint_interval_ms=1, checkpoints_retained=9)
        environment, results = StreamEnvironment(config), list[object]()
        keyed = environment.from_collection(range(2_000), type=LONG).key_by(lambda n: n % 300, LONG)
        keyed.process(Adding(), "sums", LONG).sink(results.append)
        run = Simulation(environment, seed=1, store=store, check_every=0)
        while not (kept := [key for key in store.list("job/chk-") if key.endswith("_metadata")]):
            run.step()
        assert kept
        files.append({key: store.get(key) for key in store.list("job/chk-") if key.endswith(".state")})
    assert files[0] == files[1]
    assert any(len(raw) > 3_000 for raw in files[0].values())


def test_what_was_written_at_once_is_read_again() -> None:
    backend = KeyedStateBackend(STRING)
    state = backend.value_state("v", TupleType(LONG, STRING))
    for number in range(100):
        backend.current_key = f"key {number}"
        state.update((number, "x" * number))
    after = KeyedStateBackend(STRING)
    after.restore({"v": [backend.snapshot(range(128), 128, tables.write_table_at_once)["v"]]})
    read = after.value_state("v", TupleType(LONG, STRING))
    after.current_key = "key 70"
    assert read.value() == (70, "x" * 70)
    assert len(read.keys_in_use()) == 100
