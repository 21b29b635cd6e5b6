"""A store that lasts as long as one measurement: a command runs itself again, in a child process."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError

from .home import ensure_home, home

# Names the store; without being the home as well, it would let an inherited variable reach the owner's.
_MARK = "MEASURING_STORE"


def is_inside() -> bool:
    """Whether this process is the child, whose store may be written to."""
    given = os.environ.get(_MARK)
    return bool(given) and Path(given or "") == home()


def run_inside(folder: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Runs `manage.py` with these arguments on a store below `folder`; its exit status."""
    store = str((folder / "home").resolve())
    given = {"MEMEX_HOME": store, _MARK: store, "MEMEX_MIN_FREE_MB": "0", **(environment or {})}
    finished = subprocess.run(
        [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments],
        env={**os.environ, **given},
        check=False,
    )
    return finished.returncode


def run_and_forget(arguments: Sequence[str]) -> None:
    """The same in a folder of its own. The child has said what is wrong: SystemExit with its status."""
    with tempfile.TemporaryDirectory(prefix="memex-measure-") as folder:
        status = run_inside(Path(folder), arguments)
    if status < 0:
        raise CommandError(f"The measuring process was ended by signal {-status}.")
    if status:
        raise SystemExit(status)


def store_prepare() -> None:
    ensure_home()
    call_command("migrate", verbosity=0)
