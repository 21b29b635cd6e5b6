"""What a person or an agent wants remembered: checked, and its card completed. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .fields import SUMMARY_MAX, TITLE_MAX, USE_WHEN_MAX
from .ids import is_record_id, normalise

# The other kinds are made by archiving.
KINDS = frozenset({"decision", "constraint", "fact", "preference", "procedure", "note", "open-thread"})
TEXT_MAX_BYTES = 1_000_000
LINKS = frozenset({"previous", "parent", "supersedes"})
SLOT_MAX, TAG_MAX, ENTITY_MAX, COUNT_MAX = 200, 100, 200, 50
# A summary that is made here; one that is given may have SUMMARY_MAX.
_SUMMARY_CHARACTERS = 300
_MARKS = re.compile(r"^(?:#{1,6}|[-*+>]|\d{1,3}[.)])\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


class TextTooLarge(ValueError):
    """The text has more than TEXT_MAX_BYTES."""


@dataclass(kw_only=True)
class Written:
    """`tags`: lists by name, or a bare list, which is `topic`; `links`: record ids, or one, by LINKS;
    `slot`: what it is about, such as "package manager"; `confidence`: from 0 to 1."""

    kind: str
    text: str
    title: str = ""
    summary: str = ""
    use_when: str = ""
    tags: Mapping[str, Sequence[str]] | Sequence[str] = ()
    entities: Sequence[str] = ()
    slot: str = ""
    confidence: float | None = None
    links: Mapping[str, str | Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The same, as a record holds it."""

    kind: str
    body: bytes
    title: str
    summary: str
    use_when: str
    tags: dict[str, list[str]]
    entities: list[str]
    slot: str
    confidence: float | None
    links: dict[str, list[str]]


def checked(written: Written) -> Checked:
    """ValueError, which names the field; TextTooLarge."""
    if written.kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(sorted(KINDS))}, not {written.kind!r}.")
    body = _body(written.text)
    confidence = written.confidence
    if confidence is not None and not 0 <= confidence <= 1:
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence}.")
    return Checked(
        kind=written.kind,
        body=body,
        title=_line("title", written.title, TITLE_MAX) or title_of(written.text),
        summary=_fits("summary", written.summary.strip(), SUMMARY_MAX) or summary_of(written.text),
        use_when=_line("use_when", written.use_when, USE_WHEN_MAX),
        tags=_tags(written.tags),
        entities=_texts("entities", written.entities, ENTITY_MAX),
        slot=normalise(_line("slot", written.slot, SLOT_MAX)),
        confidence=confidence,
        links=_links(written.links),
    )


def title_of(text: str) -> str:
    """The first line with something on it, without what marks it as a heading or an item."""
    first = next(line for line in text.splitlines() if line.strip())
    return _cut(" ".join(_MARKS.sub("", first.strip()).split()) or first.strip(), TITLE_MAX)


def summary_of(text: str) -> str:
    """As many of the first sentences as fit."""
    lines = (_MARKS.sub("", line.strip()) for line in text[: 20 * _SUMMARY_CHARACTERS].splitlines())
    plain = " ".join(" ".join(lines).split())
    kept = ""
    for sentence in _SENTENCE_END.split(plain):
        longer = f"{kept} {sentence}".strip()
        if len(longer) > _SUMMARY_CHARACTERS:
            break
        kept = longer
    return kept or _cut(plain, _SUMMARY_CHARACTERS)


def _body(text: str) -> bytes:
    if not text.strip():
        raise ValueError("text is empty.")
    try:
        body = text.encode()
    except UnicodeEncodeError:
        raise ValueError("text holds half a character (a lone surrogate).") from None
    if len(body) > TEXT_MAX_BYTES:
        raise TextTooLarge(f"text has {len(body):,} bytes; {TEXT_MAX_BYTES:,} are the most.")
    return body


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    kept = text[: limit - 1]
    return (kept.rpartition(" ")[0] or kept).rstrip() + "…"


def _fits(name: str, text: str, limit: int) -> str:
    if len(text) > limit:
        raise ValueError(f"{name} has {len(text):,} characters; {limit:,} are the most.")
    return text


def _line(name: str, text: str, limit: int) -> str:
    return _fits(name, " ".join(text.split()), limit)


def _tags(tags: Mapping[str, Sequence[str]] | Sequence[str]) -> dict[str, list[str]]:
    given = tags if isinstance(tags, Mapping) else {"topic": tags}
    found = {
        _line("tags", str(name), TAG_MAX): _texts("tags", values, TAG_MAX) for name, values in given.items()
    }
    if "" in found or sum(map(len, found.values())) > COUNT_MAX:
        raise ValueError(f"tags are lists of texts by name, {COUNT_MAX} texts at most.")
    return {name: values for name, values in found.items() if values}


def _texts(name: str, values: Any, limit: int) -> list[str]:
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be lists of texts.")
    texts = list(dict.fromkeys(text for value in values if (text := _line(name, value, limit))))
    if len(texts) > COUNT_MAX:
        raise ValueError(f"{name} holds {len(texts)} texts; {COUNT_MAX} are the most.")
    return texts


def _links(links: Mapping[str, str | Sequence[str]]) -> dict[str, list[str]]:
    if unknown := links.keys() - LINKS:
        raise ValueError(f"links can be {', '.join(sorted(LINKS))}, not {', '.join(sorted(unknown))}.")
    found = {name: [ids] if isinstance(ids, str) else list(dict.fromkeys(ids)) for name, ids in links.items()}
    for name, ids in found.items():
        if len(ids) > COUNT_MAX or not all(isinstance(each, str) and is_record_id(each) for each in ids):
            raise ValueError(f"links.{name} must be ids of records, {COUNT_MAX} at most.")
    return {name: ids for name, ids in found.items() if ids}
