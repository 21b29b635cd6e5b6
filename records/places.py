"""Where record files are: records/ and cold/, a folder for each workspace, a file for each record."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .files import TEMP_NAME
from .home import cold_dir, home, records_dir, safe_segment
from .ids import is_record_id

SUFFIX = ".md"


@dataclass(frozen=True)
class Place:
    record_id: str
    # The workspace's folder: its key, or what safe_segment makes of it.
    segment: str
    cold: bool

    @cached_property
    def path(self) -> Path:
        return home() / self.relative

    @property
    def relative(self) -> str:
        """Below MEMEX_HOME, as rows hold it."""
        tier = (cold_dir() if self.cold else records_dir()).name
        return f"{tier}/{self.segment}/{self.record_id}{SUFFIX}"

    @property
    def other_tier(self) -> "Place":
        return Place(self.record_id, self.segment, not self.cold)


@dataclass(frozen=True)
class Content:
    data: bytes
    # Tells whether the file is still the one that was read.
    stamp: tuple[int, int, int]
    mtime_ms: int


def place_of(record_id: str, workspace_key: str, *, cold: bool) -> Place:
    return Place(record_id, safe_segment(workspace_key), cold)


def place_at(path: Path) -> Place | None:
    """None when no record can be there: another name, a folder, a link to somewhere else."""
    segment, cold = path.parent.name, path.parent.parent == cold_dir()
    is_ours = path.suffix == SUFFIX and is_record_id(path.stem) and safe_segment(segment) == segment
    if not is_ours or path.is_symlink() or path.parent.is_symlink() or not path.is_file():
        return None
    return Place(path.stem, segment, cold)


def record_files(workspace_key: str | None = None) -> Iterator[Path]:
    """Whatever lies where record files do, hot ones first, in a fixed order; no temporary files."""
    for tier in (records_dir(), cold_dir()):
        folders = sorted(tier.iterdir()) if workspace_key is None else [tier / safe_segment(workspace_key)]
        for folder in folders:
            if folder.is_dir():
                yield from (path for path in sorted(folder.iterdir()) if not TEMP_NAME.fullmatch(path.name))


def find(place: Place) -> Place | None:
    """`place`, or the same record in the other tier: a move that was cut short harms no reader."""
    return next((each for each in (place, place.other_tier) if each.path.is_file()), None)


def read(place: Place) -> Content:
    """FileNotFoundError. A symlink is refused: it may lead out of the store."""
    descriptor = os.open(place.path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        stat = os.fstat(descriptor)
        return Content(file.read(), _stamp(stat), stat.st_mtime_ns // 1_000_000)


def is_unchanged(place: Place, content: Content) -> bool:
    try:
        return _stamp(place.path.lstat()) == content.stamp
    except FileNotFoundError:
        return False


def _stamp(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
