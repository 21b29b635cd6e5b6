"""The writing half of the bench: a generated corpus into the store and, batch by batch, into bare files,
rows and a bare index. What both sides need is prepared before either clock starts."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from records.ids import archive_id
from records.models import Record
from records.recordfile import RecordDraft, render
from records.rows import chunks
from records.search.cards import FIELDS, card_fields
from records.search.engine import HEAP_BYTES
from records.search.indexing import BATCH, bodies_sync
from records.search.passages import passages
from records.services import records_write

from .clock import Pair
from .corpus import Corpus, Text
from .raw import Index, Rows, files_write

WORKSPACE_KEY = "bench"
# As much at once as a large import indexes: enough for several processes to be worth their start.
_BATCH, _BATCH_TOKENS = 2_000, 10_000_000
_FIRST, _APART = 1_700_000_000_000, 60_000


class Written:
    """`write`: files, rows, cards and passages; `index`: the passages alone. `sample`: texts to ask for, from
    all parts of the corpus, without their bodies. `text_bytes`: of all bodies."""

    def __init__(self) -> None:
        self.write, self.index = Pair(), Pair()
        self.sample: list[Text] = []
        self.text_bytes = 0


def corpus_write(
    records: int, tokens: int, folder: Path, *, samples: int, say: Callable[[str], None]
) -> Written:
    """`folder`: for the bare files, database and index; they are removed."""
    done = Written()
    folder.mkdir()
    bare = _Bare(folder)
    corpus, count = Corpus(), 0
    step = max(1, records // samples)
    texts = corpus.texts(records, tokens)
    while batch := list(islice(texts, max(1, min(_BATCH, _BATCH_TOKENS // tokens)))):
        done.sample += [replace(text, body="") for text in batch if text.number % step == 0]
        _write(batch, bare, done)
        count += len(batch)
        say(f"{count:,} of {records:,} records written, {done.text_bytes / 1e6:,.0f} MB")
    done.index.raw.time(bare.index.close)
    done.write.raw.seconds.append(done.index.raw.seconds[-1])
    bare.rows.close()
    shutil.rmtree(folder)
    return done


def record_id(number: int) -> str:
    return archive_id(WORKSPACE_KEY, str(number), length=16)


class _Bare:
    def __init__(self, folder: Path) -> None:
        self.files = folder / "files"
        self.files.mkdir()
        options: Any = settings.DATABASES["default"]["OPTIONS"]
        self.rows = Rows(folder / "rows.db", statements=_statements(), pragmas=options["init_command"])
        self.index = Index(folder / "index", heap_bytes=HEAP_BYTES)


def _write(batch: Sequence[Text], bare: _Bare, done: Written) -> None:
    drafts = [_draft(text) for text in batch]
    before = len(done.index.raw.seconds)
    done.write.ours.time(records_write, drafts, actor="bench", verb="import")
    done.index.ours.time(bodies_sync)

    files = [(bare.files / f"{draft.id}.md", render(draft)) for draft in drafts]
    done.write.raw.time(files_write, files)
    rows, cards = _rows([draft.id for draft in drafts])
    done.write.raw.time(bare.rows.insert, rows, cards)
    pieces = [
        (text.number, piece.text) for text, draft in zip(batch, drafts, strict=True)
        for piece in passages(draft.body_bytes)
    ]  # fmt: skip
    # A commit for as many records as ours.
    last = batch[-1].number + 1
    for first in range(batch[0].number, last, BATCH):
        some = [piece for piece in pieces if first <= piece[0] < first + BATCH]
        done.index.raw.time(bare.index.add, some)

    # Writing includes indexing, on both sides.
    done.write.ours.seconds.append(done.index.ours.seconds[-1])
    done.write.raw.seconds += done.index.raw.seconds[before:]
    done.text_bytes += sum(len(draft.body_bytes) for draft in drafts)
    for path, _ in files:
        path.unlink()


def _draft(text: Text) -> RecordDraft:
    return RecordDraft(
        id=record_id(text.number),
        kind="episode",
        scope="workspace",
        workspace_key=WORKSPACE_KEY,
        session_id=f"session-{text.number // 20}",
        title=text.title[:160],
        summary=text.summary[:1000],
        tags={"topic": text.tags},
        trust="derived",
        created_at=_FIRST + text.number * _APART,
        body=text.body.encode(),
    )


def _rows(ids: Sequence[str]) -> tuple[list[tuple[Any, ...]], list[tuple[str, ...]]]:
    """As they are in the store: its rows column by column, and the texts of their cards."""
    rows: list[tuple[Any, ...]] = []
    for chunk in chunks(ids):
        marks = ", ".join(["%s"] * len(chunk))
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM records WHERE id IN ({marks})", chunk)  # noqa: S608
            rows += cursor.fetchall()
    records = Record.objects.filter(pk__in=ids).values(
        "title", "tags", "entities", "summary", "use_when", "abstract"
    )
    cards = [tuple(card_fields(record)[name] for name in FIELDS) for record in records]
    return rows, cards


def _statements() -> Iterator[str]:
    """What made the table of records, then its indexes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sql FROM sqlite_master WHERE tbl_name = %s AND sql IS NOT NULL ORDER BY type DESC",
            [Record._meta.db_table],
        )
        yield from [sql for (sql,) in cursor.fetchall()]
