"""What must hold of MEMEX_HOME before anything is stored there. No models, no settings."""

import os
import secrets
import tempfile
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

KEY_FILE = "secret_key"
KEY_BYTES = 48


def refuse_inside(folder: Path, checkout: Path) -> None:
    """People's data must survive `git clean` and never end up in a commit."""
    if folder.resolve().is_relative_to(checkout.resolve()):
        raise ImproperlyConfigured(
            f"MEMEX_HOME is {folder}, inside the program's own folder {checkout}. "
            "Choose a folder elsewhere; the default is ~/.memex."
        )


def prepare(folder: Path) -> None:
    """Makes the folder and its database where they are missing, for this user alone: by itself SQLite
    would make a file that others can read."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(folder / "index.db", os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise ImproperlyConfigured(f"MEMEX_HOME can't be used: {error}") from error


def secret_key(folder: Path) -> str:
    """The store's own signing key; made at the first start, the same for every process from then on."""
    path = folder / KEY_FILE
    try:
        if not path.exists():
            _create_once(path, secrets.token_urlsafe(KEY_BYTES))
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"The signing key {path} can't be read or written: {error}") from error
    if len(key) < KEY_BYTES:
        raise ImproperlyConfigured(f"The signing key {path} is damaged. Remove the file to get a new one.")
    return key


def _create_once(path: Path, text: str) -> None:
    """Writes `path` whole or not at all; whoever comes second leaves the first one's file."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A link, since a rename would replace the key of a process that started at the same time.
        path.hardlink_to(temporary)
    except FileExistsError:
        pass
    finally:
        Path(temporary).unlink()
