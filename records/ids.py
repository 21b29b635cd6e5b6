"""Record ids: what was archived has an id that follows from where it happened, so that archiving it
twice, by import, hook, push or a retry after a crash, gives one record. Pure."""

import base64
import hashlib
import re
import secrets
import unicodedata
from collections.abc import Iterable

RECORD_ID = re.compile(r"[a-z][a-z0-9]{0,3}_[0-9a-z]{6,40}")
LENGTH = 10
# The longest that RECORD_ID allows.
MAX_LENGTH = 40
WORKSPACE_KEY_LENGTH = 16
RANDOM_BYTES = 10


def is_record_id(text: str) -> bool:
    return RECORD_ID.fullmatch(text) is not None


def archive_id(session_id: str, compaction_id: str, *, length: int = LENGTH) -> str:
    return _hashed("mem", length, session_id, compaction_id)


def closing_id(session_id: str, last_event_id: str, *, length: int = LENGTH) -> str:
    return archive_id(session_id, f"end:{last_event_id}", length=length)


def checkpoint_id(session_id: str, compaction_id: str, *, length: int = LENGTH) -> str:
    return _hashed("chk", length, session_id, compaction_id)


def eviction_id(session_id: str, *parts: object, length: int = LENGTH) -> str:
    """`parts`: first and last seq; of an imported one the boundary's or the replacing message's id."""
    return _hashed("l1", length, session_id, *(str(part) for part in parts))


def digest_id(pool: str, level: str, ids: Iterable[str], *, length: int = LENGTH) -> str:
    """`pool`: a session id or a workspace key."""
    return _hashed("dig", length, pool, level, *sorted(ids))


def captured_id(workspace_key: str, kind: str, text: str, *, length: int = LENGTH) -> str:
    return _hashed("cap", length, workspace_key, kind, normalise(text))


def random_id() -> str:
    return "mem_" + base64.b32encode(secrets.token_bytes(RANDOM_BYTES)).decode("ascii").lower()


def normalise(text: str) -> str:
    """`text` without what makes no difference to what it says: width, case, spacing."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def workspace_key(cwd: str, session_id: str) -> str:
    """The key of the folder `cwd`, spelled as the log has it; the session's own id without one."""
    if not cwd:
        return session_id
    folder = cwd[:-1] if len(cwd) > 1 and cwd[-1] in "/\\" else cwd
    return _sha256(f"cwd:{folder}")[:WORKSPACE_KEY_LENGTH]


def _hashed(prefix: str, length: int, *parts: str) -> str:
    return f"{prefix}_{_sha256(chr(0).join(parts))[:length]}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
