"""What an index holds, and answers show, of a record that was redacted: its text without the finds.

The file keeps everything. Its finds are looked for again when it is indexed or read, so that one that people
have edited since is right as well; what can't be looked through is left out.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache

from . import detector
from .dismissed import dismissed, fingerprint
from .policy import UNSCANNED, Find, part_redacted, redacted

_LARGEST_KEPT = 64


def body_finds(body: bytes) -> tuple[Find, ...]:
    """Where in a body, in bytes."""
    digest = hashlib.sha256(body).digest()
    known = _kept.get((digest, dismissed()))
    if known is None:
        known = _kept[digest, dismissed()] = _body_finds(body)
        while len(_kept) > _LARGEST_KEPT:
            _kept.pop(next(iter(_kept)), None)
    return known


_kept: dict[tuple[bytes, frozenset[str]], tuple[Find, ...]] = {}


def _body_finds(body: bytes) -> tuple[Find, ...]:
    text = body.decode("utf-8", "surrogateescape")
    found: list[Find] = []
    at = position = 0
    for find in _text_finds(text):
        position += _size(text[at : find.start])
        size = _size(text[find.start : find.end])
        found.append(Find(position, position + size, find.rule))
        position += size
        at = find.end
    return tuple(found)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _text_finds(text: str) -> Sequence[Find]:
    scan = detector.secrets_in(text)
    if scan.gave_up or not detector.is_available():
        return [Find(0, len(text), UNSCANNED)]
    known = dismissed()
    return [find for find in scan.finds if fingerprint(text[find.start : find.end]) not in known]


def body_redacted(body: bytes) -> bytes:
    """Line by line as the body has them."""
    finds = body_finds(body)
    return part_redacted(body, finds, 0, len(body)) if finds else body


def redacted_offset(body: bytes, offset: int) -> int:
    """Where the redacted body has what begins at `offset` of this one."""
    return len(part_redacted(body[:offset], body_finds(body), 0, offset))


def original_offset(body: bytes, offset: int) -> int:
    """The other way; what stands in place of a find leads to where that begins."""
    at = position = 0
    for find in body_finds(body):
        if offset < position + find.start - at:
            break
        position += find.start - at
        position += len(part_redacted(body[find.start : find.end], [find], find.start, find.end))
        at = find.end
        if offset < position:
            return find.start
    return at + offset - position


@lru_cache(maxsize=16)
def _text_redacted(text: str, _known: frozenset[str]) -> str:
    return redacted(text, _text_finds(text))


def text_redacted(text: str) -> str:
    """Of what a body leaves out."""
    return _text_redacted(text, dismissed())
