"""How files of the store are written and moved: whole or not at all, and on disk before it is said.

A file is written to a temporary name in its own folder, fsynced and renamed; then the folder is
fsynced, since a rename lives there.
"""

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from django.conf import settings

DIR_MODE = 0o700
FILE_MODE = 0o600
TEMP_NAME = re.compile(r"\.memex-(?P<pid>\d+)-[0-9a-f]{16}\.tmp")
DEFAULT_MIN_FREE_MB = 1024
# Files held open between writing and fsync: the later fsyncs of a group cost little, the data of all
# of them being on its way already.
GROUP = 128


class StoreFull(OSError):
    """The disk has less free space than `min_free_mb`; agents need the disk too."""


def ensure_free_space() -> None:
    limit_mb: int = getattr(settings, "MEMEX_MIN_FREE_MB", DEFAULT_MIN_FREE_MB)
    free_mb = shutil.disk_usage(_existing(Path(settings.MEMEX_HOME))).free // 2**20
    if free_mb < limit_mb:
        raise StoreFull(f"Only {free_mb} MB of disk are free; below {limit_mb} MB nothing new is stored.")


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)


def fsync_dir(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_dir(path: Path) -> None:
    """Creates `path` and its missing parents, private, each entry on disk."""
    if path.is_dir():
        return
    make_dir(path.parent)
    with suppress(FileExistsError):
        path.mkdir(mode=DIR_MODE)
        fsync_dir(path.parent)


@dataclass
class Staging:
    """Files that are complete on disk under temporary names, until `publish` gives them their own."""

    staged: list[tuple[Path, Path]] = field(default_factory=list)
    published: list[Path] = field(default_factory=list)
    folders: set[Path] = field(default_factory=set)

    def add(self, items: Iterable[tuple[Path, bytes]]) -> None:
        """Takes from `items` one at a time, so that a generator need not hold all contents at once."""
        remaining = iter(items)
        while self._add_group(remaining):
            pass

    def _add_group(self, items: Iterator[tuple[Path, bytes]]) -> bool:
        with ExitStack() as opened:
            descriptors = [self._write(opened, path, data) for path, data in islice(items, GROUP)]
            for descriptor in descriptors:
                os.fsync(descriptor)
        return bool(descriptors)

    def _write(self, opened: ExitStack, path: Path, data: bytes) -> int:
        folder = path.parent
        if folder not in self.folders:
            make_dir(folder)
            self.folders.add(folder)
        temporary = folder / f".memex-{os.getpid()}-{secrets.token_hex(8)}.tmp"
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
        opened.callback(os.close, descriptor)
        self.staged.append((temporary, path))
        write_all(descriptor, data)
        return descriptor

    def publish(self, *, replace: bool = True) -> None:
        """FileExistsError, with `replace` off, for the first file that is there already."""
        place: Callable[[Path, Path], None] = os.replace if replace else _link
        for temporary, path in self.staged:
            place(temporary, path)
            self.published.append(path)
        self.staged.clear()
        for folder in self.folders:
            fsync_dir(folder)

    def discard(self) -> None:
        for temporary, _ in self.staged:
            temporary.unlink(missing_ok=True)


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _link(temporary: Path, path: Path) -> None:
    """A rename would silently replace a file that another process has just written."""
    os.link(temporary, path)
    temporary.unlink()


@contextmanager
def staging() -> Iterator[Staging]:
    """Whatever is not published when the block ends is removed."""
    stage = Staging()
    try:
        yield stage
    finally:
        stage.discard()


def write_batch(items: Sequence[tuple[Path, bytes]]) -> None:
    """Replaces each file by its new content; all are complete on disk before the first appears."""
    with staging() as stage:
        stage.add(items)
        stage.publish()


def write_atomic(path: Path, data: bytes) -> None:
    write_batch([(path, data)])


def move(source: Path, target: Path) -> None:
    """Renames a file or folder. FileExistsError rather than replace one."""
    moves = Moves()
    moves.add(source, target)
    moves.sync()


@dataclass
class Moves:
    """Renames that belong together: made durable at once, or taken back."""

    done: list[tuple[Path, Path]] = field(default_factory=list)

    def add(self, source: Path, target: Path) -> None:
        """FileExistsError rather than replace a file."""
        if target.exists():
            raise FileExistsError(f"{target} is there already.")
        make_dir(target.parent)
        source.rename(target)
        self.done.append((source, target))

    def sync(self) -> None:
        folders = {path.parent: None for source, target in self.done for path in (target, source)}
        for folder in folders:
            fsync_dir(folder)

    def undo(self) -> None:
        for source, target in reversed(self.done):
            if target.exists() and not source.exists():
                target.rename(source)
        self.sync()


def is_leftover(path: Path) -> bool:
    """Whether `path` is a temporary file whose writer is gone."""
    match = TEMP_NAME.fullmatch(path.name)
    return match is not None and not _is_alive(int(match["pid"]))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
