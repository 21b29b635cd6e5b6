"""Brings in the records of an original Memex store: the Markdown files under its records/ and cold/.

The files are only read. Records keep their ids; one that is here already, or was forgotten, is left as it
is. Cold ones come in hot: how much may be hot is this store's own setting.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .header import HeaderError
from .recordfile import RecordDraft, parse, validate
from .rows import chunks
from .secrets.gathering import draft_looked_through
from .services import records_write

_TIERS = ("records", "cold")
_REQUIRED = ("id", "kind", "scope", "workspace_key", "title", "trust", "created_at")
_BATCH = 50


@dataclass(slots=True)
class Imported:
    """found = created + there_before + forgotten + unreadable."""

    found: int = 0
    created: int = 0
    there_before: int = 0
    forgotten: int = 0
    unreadable: int = 0


class NoStore(Exception):
    """The folder holds no records/."""


def records_import(folder: Path, *, say: Callable[[str], None] = lambda _: None) -> Imported:
    """`say` gets one line a file that can't be read. Raises NoStore, StoreFull."""
    if not (folder / "records").is_dir():
        raise NoStore(f"{folder} is no Memex store: it has no records/ folder.")
    result = Imported()
    for batch in chunks(_drafts(folder, result, say), _BATCH):
        for outcome in records_write(batch, actor="owner", verb="import"):
            result.created += outcome.created
            result.forgotten += outcome.tombstoned
            result.there_before += not outcome.created and not outcome.tombstoned
    return result


def _drafts(folder: Path, result: Imported, say: Callable[[str], None]) -> Iterator[RecordDraft]:
    for tier in _TIERS:
        for path in sorted((folder / tier).glob("*/*.md")):
            result.found += 1
            try:
                yield _draft(path)
            except (HeaderError, ValueError, OSError) as error:
                result.unreadable += 1
                say(f"{path}: {error}")


def _draft(path: Path) -> RecordDraft:
    """Symlinks are not followed: they may lead anywhere."""
    if path.is_symlink() or path.parent.is_symlink():
        raise ValueError("a symlink")
    parsed = parse(path.read_bytes())
    if missing := [name for name in _REQUIRED if not parsed.draft_fields.get(name)]:
        raise ValueError(f"its front matter lacks {', '.join(missing)}")
    # The body is estimated anew: the original stated what the agent had counted.
    fields = {**parsed.draft_fields, "schema": 1, "tokens": 0}
    draft = RecordDraft(**fields, body=parsed.body.lstrip(b"\n"))
    validate(draft)
    return draft_looked_through(draft)
