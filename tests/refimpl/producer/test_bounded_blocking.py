"""A result that is read when it is finished: what is written is what every reader finds, wherever it is kept."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from refimpl.config import Config
from refimpl.drivers.bounded_files import FileBoundedData, MappedBoundedData, ResultFolder, WrittenMapBoundedData
from refimpl.errors import LocalUsageError, SluiceError
from refimpl.memory import BufferConsumer, DataType, LocalBufferPool, NetworkBufferPool, heap_buffer
from refimpl.producer import (
    BLOCKING_TRANSITIONS,
    ENTRY_HEADER_BYTES,
    BlockingEvent,
    BlockingResultPartition,
    BlockingState,
    BoundedBlockingSubpartition,
    BoundedBlockingView,
    BoundedData,
    BoundedReader,
    MemoryBoundedData,
    PipelinedSubpartition,
    ResultPartitionType,
    pack_entry_header,
    unpack_entry_header,
)
from refimpl.records.event_serializer import event_from_bytes
from refimpl.records.events import EndOfPartition

SEGMENT = 64
KINDS = ["memory", "file", "map", "written map"]
EACH = pytest.mark.parametrize("kind", KINDS)


def data_of(kind: str, folder: Path, name: str = "result-0") -> BoundedData:
    if kind == "memory":
        return MemoryBoundedData()
    if kind == "file":
        return FileBoundedData(folder / name, SEGMENT)
    return (MappedBoundedData if kind == "map" else WrittenMapBoundedData)(folder / name, SEGMENT)


def subpartition_of(kind: str, folder: Path, *pieces: bytes) -> BoundedBlockingSubpartition:
    """A finished one with these buffers."""
    subpartition = BoundedBlockingSubpartition(0, "map-0", data_of(kind, folder))
    for piece in pieces:
        assert subpartition.add(BufferConsumer.of_buffer(heap_buffer(piece, DataType.DATA)))
    subpartition.finish()
    return subpartition


def nothing() -> None:
    """Nobody is told."""


def read_all(view: BoundedBlockingView) -> list[bytes]:
    """The bytes of every entry with data; the last entry is the end of the partition."""
    found, is_at_end = [], False
    while (read := view.poll()) is not None:
        assert not is_at_end
        assert read.sequence_number == len(found)
        if read.buffer.is_buffer:
            found.append(bytes(read.buffer.data))
        else:
            is_at_end = isinstance(event_from_bytes(read.buffer.data), EndOfPartition)
        assert read.is_more_available is not is_at_end
        read.buffer.recycle()
    assert is_at_end
    assert view.poll() is None
    return found


@EACH
def test_every_reader_finds_all_from_the_beginning(kind: str, tmp_path: Path) -> None:
    """Flink: BoundedBlockingSubpartitionWriteReadTest#testRead10ConsumersConcurrent."""
    pieces = [bytes([number]) * (number % SEGMENT + 1) for number in range(100)]
    subpartition = subpartition_of(kind, tmp_path, *pieces)
    views = [subpartition.create_view() for _ in range(5)]
    assert [read_all(view) for view in views] == [pieces] * 5
    for view in views:
        view.close()
    assert read_all(subpartition.create_view()) == pieces
    assert (subpartition.num_buffers, subpartition.num_events) == (100, 1)


@EACH
def test_readers_in_any_order_do_not_disturb_each_other(kind: str, tmp_path: Path) -> None:
    for seed in range(30):
        rng = random.Random(seed)
        (tmp_path / str(seed)).mkdir()
        pieces = [rng.randbytes(rng.randrange(1, SEGMENT)) for _ in range(rng.randrange(20))]
        subpartition = subpartition_of(kind, tmp_path / str(seed), *pieces)
        views = [subpartition.create_view() for _ in range(3)]
        found: list[list[bytes]] = [[], [], []]
        held: list[list[object]] = [[], [], []]
        for _ in range(400):
            which = rng.randrange(3)
            if held[which] and rng.random() < 0.5:
                held[which].pop(rng.randrange(len(held[which]))).recycle()  # type: ignore[attr-defined]
            elif (read := views[which].poll()) is not None:
                held[which].append(read.buffer)
                if read.buffer.is_buffer:
                    found[which].append(bytes(read.buffer.data))
        assert found == [pieces] * 3, f"seed {seed}"


@EACH
def test_until_it_is_finished_a_reader_is_refused_and_after_the_release_too(kind: str, tmp_path: Path) -> None:
    """Flink: BoundedBlockingSubpartitionTest#testCreateReaderBeforeFinished (P70)."""
    subpartition = BoundedBlockingSubpartition(0, "map-0", data_of(kind, tmp_path))
    with pytest.raises(LocalUsageError, match="being written"):
        subpartition.create_view()
    subpartition.finish()
    with pytest.raises(LocalUsageError, match="finished"):
        subpartition.finish()
    subpartition.release()
    with pytest.raises(LocalUsageError, match="released"):
        subpartition.create_view()
    subpartition.release()


def test_the_table_goes_where_it_says() -> None:
    assert set(BLOCKING_TRANSITIONS) == set(BlockingState)
    assert {event for row in BLOCKING_TRANSITIONS.values() for event in row} == set(BlockingEvent)


@EACH
def test_the_backlog_counts_down_and_an_event_needs_no_credit(kind: str, tmp_path: Path) -> None:
    view = subpartition_of(kind, tmp_path, b"a", b"b").create_view()
    seen = []
    while (read := view.poll()) is not None:
        seen.append((read.backlog, read.is_event_next))
        read.buffer.recycle()
    assert seen == [(1, False), (0, True), (0, False)]
    with pytest.raises(LocalUsageError, match="not held up"):
        view.resume()


@EACH
def test_a_flush_writes_what_there_is_and_the_rest_comes_later(kind: str, tmp_path: Path) -> None:
    pool = LocalBufferPool(NetworkBufferPool(1, SEGMENT), 1, 1, "writer", 1)
    subpartition = BoundedBlockingSubpartition(0, "map-0", data_of(kind, tmp_path))
    builder = pool.request_builder(0)
    assert builder is not None
    subpartition.add(builder.create_consumer())
    subpartition.flush()
    builder.append_and_commit(b"first ")
    subpartition.flush()
    subpartition.flush()
    builder.append_and_commit(b"second")
    builder.finish()
    subpartition.finish()
    assert b"".join(read_all(subpartition.create_view())) == b"first second"
    assert pool.request_builder(0) is not None


@EACH
def test_what_is_written_gives_its_buffer_back_at_once(kind: str, tmp_path: Path) -> None:
    """So one or two buffers are enough for a result of any length."""
    pool = LocalBufferPool(NetworkBufferPool(1, SEGMENT), 1, 1, "writer", 1)
    subpartition = BoundedBlockingSubpartition(0, "map-0", data_of(kind, tmp_path))
    for number in range(50):
        builder = pool.request_builder(0)
        assert builder is not None, f"buffer {number} is not back"
        consumer = builder.create_consumer()
        builder.append_and_commit(bytes([number]))
        builder.finish()
        subpartition.add(consumer)
        subpartition.flush()
    subpartition.finish()
    assert read_all(subpartition.create_view()) == [bytes([number]) for number in range(50)]


def test_a_file_reader_has_two_buffers_and_tells_when_one_is_back_and_more_to_come(tmp_path: Path) -> None:
    """Flink: FileChannelBoundedDataTest#testReadNextBuffer, #testRecycleBufferForNotifyingSubpartitionView (P69)."""
    data = FileBoundedData(tmp_path / "r", SEGMENT)
    for piece in (b"a", b"b", b"c"):
        data.write(memoryview(piece), DataType.DATA)
    data.finish()
    told: list[int] = []
    reader = data.reader(lambda: told.append(1))
    first, second = reader.read(), reader.read()
    assert first is not None
    assert second is not None
    assert reader.read() is None
    first.recycle()
    assert told == [1]
    third = reader.read()
    assert third is not None
    assert bytes(third.data) == b"c"
    assert reader.read() is None
    second.recycle()
    third.recycle()
    assert told == [1]
    assert reader.is_at_end


def test_a_view_whose_buffers_are_out_goes_on_when_it_is_told(tmp_path: Path) -> None:
    pieces = [bytes([number]) for number in range(6)]
    told: list[int] = []
    view = subpartition_of("file", tmp_path, *pieces).create_view()
    view.open(lambda: told.append(1))
    assert told == [1]
    told.clear()
    held = []
    while (read := view.poll()) is not None:
        held.append(read.buffer)
    assert len(held) == 2
    assert not view.is_data_available
    held[0].recycle()
    assert told
    assert view.is_data_available


@pytest.mark.parametrize("kind", ["file", "map"])
def test_the_file_goes_with_the_release_and_the_last_reader(kind: str, tmp_path: Path) -> None:
    subpartition = subpartition_of(kind, tmp_path, b"abc", b"def")
    view = subpartition.create_view()
    first = view.poll()
    assert first is not None
    subpartition.release()
    assert (tmp_path / "result-0").exists()
    second = view.poll()
    assert second is not None
    view.close()
    view.close()
    assert not (tmp_path / "result-0").exists()
    assert (bytes(first.buffer.data), bytes(second.buffer.data)) == (b"abc", b"def")
    first.buffer.recycle()
    second.buffer.recycle()
    with pytest.raises(LocalUsageError):
        _ = first.buffer.data


def test_a_map_stays_for_who_still_looks_at_its_bytes(tmp_path: Path) -> None:
    subpartition = subpartition_of("map", tmp_path, b"abc")
    view = subpartition.create_view()
    read = view.poll()
    assert read is not None
    look = read.buffer.data
    view.close()
    subpartition.release()
    read.buffer.recycle()
    assert bytes(look) == b"abc"


@pytest.mark.parametrize("kind", ["file", "map"])
@pytest.mark.parametrize("seed", range(40))
def test_damage_is_told_with_the_name_of_the_file(kind: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    data = data_of(kind, tmp_path)
    assert isinstance(data, FileBoundedData | MappedBoundedData)
    for _ in range(4):
        data.write(memoryview(rng.randbytes(9)), DataType.DATA)
    data._entries.flush()
    whole = bytearray((tmp_path / "result-0").read_bytes())
    entry = rng.randrange(4) * (ENTRY_HEADER_BYTES + 9)
    if rng.random() < 0.5:
        del whole[entry + rng.randrange(1, ENTRY_HEADER_BYTES + 9) :]
    else:
        whole[entry + rng.choice([3, 4, 5])] ^= 0x40  # of the flag and the size, so that it cannot be right
    (tmp_path / "result-0").write_bytes(whole)
    data.finish()
    with pytest.raises(SluiceError, match="result-0 is damaged"):
        drain(data.reader(nothing))


def drain(reader: BoundedReader) -> None:
    while not reader.is_at_end:
        buffer = reader.read()
        assert buffer is not None
        buffer.recycle()


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (b"", "ends within"),
        (pack_entry_header(DataType.DATA, 5)[:-1], "ends within"),
        (pack_entry_header(DataType.DATA, 65), "65 bytes"),
        (b"\x09\x00" + pack_entry_header(DataType.DATA, 5)[2:], "kind"),
        (pack_entry_header(DataType.DATA, 5)[:2] + b"\x07\x00" + pack_entry_header(DataType.DATA, 5)[4:], "damaged"),
        (pack_entry_header(DataType.DATA, 5)[:4] + b"\xff\xff\xff\xff", "-1 bytes"),
    ],
)
def test_a_header_that_nobody_has_written_is_refused(header: bytes, why: str) -> None:
    with pytest.raises(SluiceError, match=why):
        unpack_entry_header(header, 64, "result-0")


@pytest.mark.parametrize(
    ("data_type", "kind"),
    [(DataType.DATA, 0), (DataType.EVENT, 1), (DataType.END_OF_DATA, 3), (DataType.END_OF_PARTITION, 4)],
)
def test_an_entry_is_eight_bytes_in_the_machines_order_and_then_its_own(data_type: DataType, kind: int) -> None:
    """Flink: BufferReaderWriterUtilTest#writeReadFileChannel."""
    order = sys.byteorder
    header = pack_entry_header(data_type, 7)
    assert len(header) == ENTRY_HEADER_BYTES == 8
    assert header == kind.to_bytes(2, order) + bytes(2) + (7).to_bytes(4, order)
    assert unpack_entry_header(header, 7, "").data_type is data_type


@EACH
def test_a_barrier_does_not_go_into_a_blocking_result(kind: str, tmp_path: Path) -> None:
    with pytest.raises(LocalUsageError, match="ALIGNED_BARRIER does not go"):
        data_of(kind, tmp_path).write(memoryview(b"b"), DataType.ALIGNED_BARRIER)


def test_a_disk_that_is_full_is_told_with_the_name_of_the_file(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no device here that is always full")
    data = FileBoundedData(tmp_path / "r", SEGMENT)
    data.write(memoryview(b"x"), DataType.DATA)
    with full.open("wb", buffering=0) as device:
        data._entries._file = device
        with pytest.raises(SluiceError, match="result r could not be written: the disk is full"):
            data.write(memoryview(b"x"), DataType.DATA)


def test_what_a_dead_task_manager_has_left_goes_at_the_next_start_or_end_and_what_lives_stays(tmp_path: Path) -> None:
    living = ResultFolder(tmp_path, "tm-0")
    (living.path / "kept").touch()
    dead = ResultFolder(tmp_path, "tm-1")
    (dead.path / "left").touch()
    dead._lock.close()  # as when its process was killed
    following = ResultFolder(tmp_path, "tm-2")
    assert not dead.path.exists()
    assert (living.path / "kept").exists()
    with pytest.raises(LocalUsageError, match="somebody else"):
        ResultFolder(tmp_path, "tm-0")
    (following.path / "left").touch()
    following._lock.close()
    other = ResultFolder(tmp_path, "tm-3")
    dies_later = ResultFolder(tmp_path, "tm-4")
    dies_later._lock.close()
    other.close()
    assert [each.name for each in tmp_path.iterdir()] == ["tm-0"]
    living.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "answers"),
    [
        (ResultPartitionType.BLOCKING, (False, False, False, False)),
        (ResultPartitionType.BLOCKING_PERSISTENT, (False, False, False, True)),
        (ResultPartitionType.PIPELINED, (True, True, False, False)),
        (ResultPartitionType.PIPELINED_BOUNDED, (True, True, True, False)),
    ],
)
def test_the_four_answers_of_each_kind(kind: ResultPartitionType, answers: tuple[bool, ...]) -> None:
    assert (kind.is_pipelined, kind.has_back_pressure, kind.is_bounded, kind.is_persistent) == answers
    assert kind.is_blocking is not kind.is_pipelined


class OtherRules(BoundedBlockingSubpartition):
    """The same rules, by another name."""


@EACH
def test_other_rules_go_on_where_the_first_ones_stopped_and_nothing_is_lost(kind: str, tmp_path: Path) -> None:
    pool = LocalBufferPool(NetworkBufferPool(2, SEGMENT), 2, 2, "writer", 1)
    partition = BlockingResultPartition("map-0", pool, Config(), [data_of(kind, tmp_path)])
    first = partition.subpartitions[0]
    for piece in (b"one", b"two"):
        partition.add(BufferConsumer.of_buffer(heap_buffer(piece, DataType.DATA)), 0)
    partition.use(PipelinedSubpartition)
    assert partition.subpartitions[0] is first
    partition.use(OtherRules)
    assert type(partition.subpartitions[0]) is OtherRules
    partition.add(BufferConsumer.of_buffer(heap_buffer(b"three", DataType.DATA)), 0)
    partition.finish()
    assert read_all(partition.create_view(0)) == [b"one", b"two", b"three"]
    partition.use(BoundedBlockingSubpartition)
    assert type(partition.subpartitions[0]) is OtherRules, "who reads knows these"
    with pytest.raises(LocalUsageError, match="last rules"):
        partition.subpartitions[0].under_other_rules(BoundedBlockingSubpartition)
