"""ledger.jsonl: who did what to which record, and when. Never what a record says."""

import json
import logging
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from .clock import now_ms
from .files import FILE_MODE
from .home import home

MAX_BYTES = 64 * 2**20

logger = logging.getLogger(__name__)


def ledger_path() -> Path:
    return home() / "ledger.jsonl"


def ledger_write(actor: str, verb: str, ids: Iterable[str]) -> None:
    """Appends one line. What it tells of has happened already: a failure is logged, not raised."""
    entry = {"at": now_ms(), "actor": actor, "verb": verb, "ids": list(ids)}
    try:
        _append(ledger_path(), json.dumps(entry, ensure_ascii=True).encode() + b"\n")
    except OSError as error:
        logger.warning("The ledger could not be written: %s", error)


def _append(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, FILE_MODE)
    try:
        # One call: lines of several processes don't mix.
        os.write(descriptor, line)
        size = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    if size >= MAX_BYTES:
        path.rename(path.with_name(f"ledger-{now_ms()}-{secrets.token_hex(4)}.jsonl"))
