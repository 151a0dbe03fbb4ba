"""Tables as Parquet that can be trusted: written beside, checked, and put in place in one step.

A stored table is a folder of Parquet files and `manifest.json`: schema, number of rows, seed, version of the generator,
and the SHA-256 of each file. The folder gets its name only when all of it is there, so nobody ever finds half a table;
what a failure leaves has another name and is removed; what a killed process leaves, by the next one that stores that
table. Reading compares every byte with the manifest.

Spark writes the files itself: on a cluster the folder must be one that all machines see.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course.data.datasets import DEFAULT_SEED, data_set, table
from course.data.generated import VERSION
from course.data.progress_bar import shows_progress
from course.data.scratch import make_beside, remove_scratch, spark_path
from course.data.session import cancels
from course.data.spark_values import quoted
from course.places import cache_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "MANIFEST", "Manifest", "TableError", "cached", "in_words", "make", "placed", "read_table", "seal", "types_of",
    "verify", "write_table",
]  # fmt: skip

MANIFEST = "manifest.json"
FORMAT = "sluice-table/1"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FULL_WORDS = ("No space left on device", "Disk quota exceeded", "File too large")
_CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS)


class TableError(RuntimeError):
    """A table that cannot be read, or was not written; the text is one sentence. Nothing half-written is left."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a stored table is: `about` is its data set, rows asked for, seed and options; `files` the checksums.

    `schema` has Spark's name of each column's type, `struct` the whole schema as Spark's JSON.
    """

    schema: Mapping[str, str]
    num_rows: int
    about: Mapping[str, Any]
    version: int
    files: Mapping[str, str]
    struct: Mapping[str, Any] | None = None

    def write(self, folder: Path) -> None:
        """Write it into the folder of the table, to the disk."""
        with (folder / MANIFEST).open("w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, **asdict(self)}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of a stored table.

        Raises:
            TableError: there is no table, or what is there is none of ours.
        """
        try:
            found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            if found.pop("format") != FORMAT:
                raise ValueError("it has another format")
            return cls(**found)
        except FileNotFoundError as error:
            missing = f"it has no {MANIFEST}" if folder.is_dir() else "it does not exist"
            raise TableError(f"{folder} is no stored table: {missing}.") from error
        except OSError as error:
            raise TableError(f"{folder} cannot be read: {error.strerror}.") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise TableError(f"{folder} is no stored table: its {MANIFEST} cannot be understood ({error}).") from error


@contextmanager
def placed(folder: Path) -> Iterator[Path]:
    """Lend a folder beside `folder`; it takes that name when the body ends well, and is removed when it does not.

    Raises:
        TableError: the disk is full, or cannot be written; says which and where.
    """
    beside: Path | None = None
    try:
        beside = make_beside(folder)
        yield beside
        _replace(beside, folder)
    except OSError as error:
        raise in_words(error, folder) from error
    except Exception as error:
        if any(words in str(error) for words in _FULL_WORDS):
            raise in_words(OSError(errno.ENOSPC, "full"), folder) from error
        raise
    finally:
        if beside is not None:
            remove_scratch(beside)


def write_table(frame: DataFrame, folder: Path, about: Mapping[str, Any] | None = None) -> Manifest:
    """Store a DataFrame as `folder`; what had that name before is replaced when the new one is whole.

    Raises:
        TableError: the disk is full or cannot be written; nothing is left, and the old table stays.
        SparkUnavailable: Spark's own disk is full, or its JVM has ended.
    """
    folder = folder.absolute()
    session = frame.sparkSession
    with cancels(session), placed(folder) as beside, shows_progress(session, f"writing {folder.name}"):
        frame.write.option("compression", "zstd").parquet(f"file://{beside / 'data'}")
        return seal(beside, frame.schema, about or {})


def types_of(struct: StructType) -> dict[str, str]:
    """Spark's name of each column's type."""
    return {field.name: field.dataType.simpleString() for field in struct}


def seal(beside: Path, struct: StructType, about: Mapping[str, Any]) -> Manifest:
    """Move the Parquet files of `beside/data` to their place, drop what Spark left there, and write the manifest."""
    import pyarrow.parquet as pq

    for part in sorted((beside / "data").glob("*.parquet")):
        part.rename(beside / part.name)
    shutil.rmtree(beside / "data")
    parts = sorted(beside.glob("*.parquet"))
    manifest = Manifest(
        types_of(struct),
        sum(pq.read_metadata(part).num_rows for part in parts),
        dict(about),
        VERSION,
        {part.name: _sha256(part) for part in parts},
        struct.jsonValue(),
    )
    manifest.write(beside)
    return manifest


def verify(folder: Path, expects: Mapping[str, str] | None = None, columns: tuple[str, ...] = ()) -> Manifest:
    """Compare every file with the manifest, and the schema with what is expected.

    Raises:
        TableError: a file is missing, changed or too many; a column is missing or of another type.
    """
    manifest = Manifest.read(folder)
    for name in columns:
        if name not in manifest.schema:
            raise TableError(f"{folder} has no column {name!r}; it has {', '.join(manifest.schema)}.")
    if expects is not None and dict(manifest.schema) != dict(expects):
        raise TableError(f"{folder} has another schema: {_difference(manifest.schema, expects)}; make it again.")
    there = {part.name for part in folder.glob("*.parquet")}
    for name, digest in manifest.files.items():
        if name not in there:
            raise TableError(f"{folder} is not whole: {name} is missing; make it again.")
        if (found := _sha256(folder / name)) != digest:
            raise TableError(
                f"{folder} is damaged: {name} has checksum {found[:12]}…, expected {digest[:12]}…; make it again."
            )
    if extra := there - set(manifest.files):
        raise TableError(f"{folder} holds {min(extra)}, which its {MANIFEST} does not know; make it again.")
    return manifest


def read_table(
    session: SparkSession, folder: Path, expects: Mapping[str, str] | None = None, columns: tuple[str, ...] = ()
) -> DataFrame:
    """A stored table as a DataFrame, after checking it; with `columns`, only these.

    Raises:
        TableError: as in `verify`.
    """
    folder = folder.absolute()
    manifest = verify(folder, expects, columns)
    schema: str | StructType = ", ".join(f"{quoted(name)} {kind}" for name, kind in manifest.schema.items())
    if manifest.struct is not None:  # words would not do for every name within a type
        schema = _as_read(manifest.struct)
    paths = [spark_path(folder / name) for name in manifest.files]
    frame = session.read.schema(schema).parquet(*paths) if paths else session.createDataFrame([], schema)
    return frame.select(*map(quoted, columns)) if columns else frame


def _as_read(struct: Mapping[str, Any]) -> StructType:
    """A stored schema, with text of any length for `char` and `varchar`: Spark reads no files as these."""
    from pyspark.sql.types import StructType

    words = re.sub(r'"(?:var)?char\(\d+\)"', '"string"', json.dumps(struct))
    return StructType.fromJson(json.loads(words))


def make(
    name: str, session: SparkSession, folder: Path, rows: int | None = None, seed: int = DEFAULT_SEED, **options: Any
) -> Manifest:
    """Make a data set and store it as `folder`.

    Raises:
        NoSuchDataError: no such data set, option or number of rows.
        TableError: it could not be stored; nothing is left.
    """
    about = _about(name, rows, seed, options)
    return write_table(table(name, session, rows, seed, **options), folder, about)


def cached(
    name: str, session: SparkSession, rows: int | None = None, seed: int = DEFAULT_SEED, **options: Any
) -> DataFrame:
    """A data set from the cache folder, where it is made the first time; one of another version is made again.

    Raises:
        NoSuchDataError: no such data set, option or number of rows.
        TableError: what is there is damaged, or the cache folder cannot be written; SLUICE_CACHE names another.
    """
    about = _about(name, rows, seed, options)
    key = "-".join([name, str(about["rows"]), f"seed{seed}", *map(str, options.values())])
    folder = cache_folder() / "tables" / key
    if not folder.is_dir() or Manifest.read(folder).version != VERSION:
        make(name, session, folder, rows, seed, **options)
    return read_table(session, folder, data_set(name).types)


def _about(name: str, rows: int | None, seed: int, options: Mapping[str, Any]) -> dict[str, Any]:
    wanted = data_set(name).default_rows if rows is None else rows
    return {"name": name, "rows": wanted, "seed": seed, "options": dict(options)}


def _replace(beside: Path, folder: Path) -> None:
    """Give `beside` the name `folder`; what had it before is there until then, or again if that fails."""
    if not folder.exists():
        beside.rename(folder)
        return
    if not (folder / MANIFEST).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise TableError(f"{folder} is there already and is no stored table; name another folder.")
    old = beside.with_suffix(".old")
    folder.rename(old)
    try:
        beside.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def in_words(error: OSError, folder: Path) -> TableError:
    """What an error of the system means for a table that was to be called `folder`."""
    place = f"{folder.name} was not stored"
    if error.errno in _FULL:
        return TableError(f"{place}: the disk of {folder.parent} is full; make room, or name another folder.")
    if error.errno in _CLOSED:
        return TableError(
            f"{place}: {folder.parent} cannot be written ({error.strerror}); name another folder, SLUICE_CACHE for "
            "the cache."
        )
    return TableError(f"{place} in {folder.parent}: {error.strerror or error}.")


def _difference(found: Mapping[str, str], expected: Mapping[str, str]) -> str:
    """What two schemas do not agree on, in words."""
    parts = [f"no column {name!r}" for name in expected if name not in found]
    parts += [f"column {name!r}, which is unknown" for name in found if name not in expected]
    both = [name for name in expected if name in found and found[name] != expected[name]]
    parts += [f"{name!r} is {found[name]}, expected {expected[name]}" for name in both]
    return "; ".join(parts) or "its columns are in another order"


def _sha256(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise TableError(f"{file} cannot be read: {error.strerror}.") from error
