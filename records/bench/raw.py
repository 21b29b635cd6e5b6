"""The bare operations that ours are compared with. No ORM; tantivy as it comes, and not by way of our engine.

Each works on what was prepared before the clock started: bytes, rows, texts.
"""

import os
import sqlite3
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tantivy

# As many files are open between writing and fsync as in records.files.
GROUP = 128
_RIPGREP = ("--no-config", "-uuu", "--text", "--ignore-case", "--line-number", "--color=never")
_CARDS = "CREATE VIRTUAL TABLE cards USING fts5(title, tags, summary, use_when, abstract)"


def files_write(items: Sequence[tuple[Path, bytes]]) -> None:
    """Every file fsynced, in groups, and their folders: as durable as ours, without temporary names."""
    for at in range(0, len(items), GROUP):
        descriptors = []
        for path, data in items[at : at + GROUP]:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            descriptors.append(descriptor)
            os.write(descriptor, data)
        for descriptor in descriptors:
            os.fsync(descriptor)
            os.close(descriptor)
    for folder in {path.parent for path, _ in items}:
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


class Rows:
    """A database with the store's own table of records and its indexes, and FTS5 cards with the usual words."""

    def __init__(self, path: Path, *, statements: Iterable[str], pragmas: str) -> None:
        """`statements`: those that made the table and its indexes."""
        self._connection = sqlite3.connect(path)
        self._connection.executescript(pragmas)
        for statement in [*statements, _CARDS]:
            self._connection.execute(statement)

    def insert(self, rows: Sequence[tuple[Any, ...]], cards: Sequence[tuple[str, ...]]) -> None:
        with self._connection as connection:
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO records VALUES ({marks})", rows)  # noqa: S608
            connection.executemany("INSERT INTO cards VALUES (?, ?, ?, ?, ?)", cards)

    def close(self) -> None:
        self._connection.close()


class Index:
    """Passages in tantivy: English stems with their frequencies, a record's number, one thread."""

    def __init__(self, path: Path, *, heap_bytes: int) -> None:
        path.mkdir()
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", tokenizer_name="en_stem", index_option="freq")
        builder.add_unsigned_field("record", fast=True)
        self._index = tantivy.Index(builder.build(), str(path))
        self._writer = self._index.writer(heap_bytes, 1)

    def add(self, passages: Iterable[tuple[int, str]]) -> None:
        """(a record's number, text), committed together."""
        for number, text in passages:
            document = tantivy.Document()
            document.add_text("text", text)
            document.add_unsigned("record", number)
            self._writer.add_document(document)
        self._writer.commit()

    def close(self) -> None:
        self._writer.wait_merging_threads()


def ripgrep(program: Path, pattern: str, folder: Path, *, literal: bool) -> None:
    """Every matching line of every file below `folder`, read and thrown away."""
    fixed = ("--fixed-strings",) if literal else ()
    subprocess.run(
        [str(program), *_RIPGREP, *fixed, "-e", pattern, "--", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
