"""Archived text as HTML. It is hostile: what a page said to an agent may be in it. Pure.

No HTML of its own, no images, links to the web and to mail only; whatever the renderer makes of it goes
through a sanitiser as well.
"""

import html as entities
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import nh3
from markdown_it import MarkdownIt

WINDOW_BYTES = 128 * 1024
# What is shown of the text before a place that somebody is led to.
LEAD_BYTES = 3_000

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
    "pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_SCHEMES = {"http", "https", "mailto"}
_ABSOLUTE = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
# The headings of archived events; text that looks like one was escaped when it was archived.
_EVENT_HEADING = b"\n### [#"
_EVENT_LINK = re.compile(r"<h3>\[#(\d+)\]")
# The sanitiser writes every attribute between double quotes, in which a ">" may stand.
_TAG = re.compile(r"(<(?:[^>\"]|\"[^\"]*\")*>)")
_FENCE = re.compile(r"^(`{3,}|~{3,})(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Window:
    """`next_start` None: this was the last part."""

    text: str
    next_start: int | None


def render(text: str) -> str:
    """Safe HTML."""
    return nh3.clean(
        _MARKDOWN.render(text),
        tags=_TAGS,
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        attribute_filter=_absolute_links,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer",
    )


def link_events(html: str, session_url: str) -> str:
    """Makes each event's heading a link to that event. `session_url`: escaped, without a query."""
    return _EVENT_LINK.sub(rf'<h3><a href="{session_url}?at=\1#e\1">#\1</a>', html)


def anchored(html: str, heading: str, anchor: str) -> str:
    """With an id on the first such heading, so that an address can lead there."""
    return html.replace(f"<h2>{heading}</h2>", f'<h2 id="{anchor}">{heading}</h2>', 1)


def marked(html: str, marks: Callable[[str], Sequence[tuple[int, int]]]) -> str:
    """Safe HTML with `<mark>` around the parts of its text that `marks` names, (start, end) each, in order.
    Tags stay as they are."""
    pieces = _TAG.split(html)
    # Every other piece is a tag.
    pieces[::2] = (_marked_text(piece, marks) if piece.strip() else piece for piece in pieces[::2])
    return "".join(pieces)


def _marked_text(piece: str, marks: Callable[[str], Sequence[tuple[int, int]]]) -> str:
    text = entities.unescape(piece)
    found = marks(text)
    return "".join(_with_marks(text, found)) if found else piece


def _with_marks(text: str, marks: Sequence[tuple[int, int]]) -> Iterator[str]:
    at = 0
    for start, end in marks:
        yield entities.escape(text[at:start], quote=False)
        yield f"<mark>{entities.escape(text[start:end], quote=False)}</mark>"
        at = end
    yield entities.escape(text[at:], quote=False)


def before(body: bytes, start: int, size: int = LEAD_BYTES) -> str:
    """The text right before byte `start`: from the event's beginning, or from a line's, at most `size` bytes."""
    start = min(start, len(body))
    low = max(0, start - size)
    found = body.rfind(_EVENT_HEADING, low, start)
    if found < 0 and low:
        found = body.find(b"\n", low, start)
        if found < 0:
            return ""
    begin = found + 1
    return _fence_before(body, begin) + body[begin:start].decode("utf-8", "ignore")


def window(body: bytes, start: int, size: int = WINDOW_BYTES) -> Window:
    """The part of a body that begins at byte `start`, cut where an event begins if one does, else at a
    line's end; a code fence that the cut goes through is opened again."""
    start = min(max(start, 0), len(body))
    end = len(body) if len(body) - start <= size else _cut(body, start, start + size)
    text = _fence_before(body, start) + body[start:end].decode("utf-8", "ignore")
    return Window(text, end if end < len(body) else None)


def _cut(body: bytes, start: int, limit: int) -> int:
    for mark in (_EVENT_HEADING, b"\n"):
        found = body.rfind(mark, start + 1, limit)
        if found > start:
            return found + 1
    # One line longer than a window: cut it between two characters.
    while limit > start + 1 and body[limit] & 0xC0 == 0x80:
        limit -= 1
    return limit


def _fence_before(body: bytes, start: int) -> str:
    """The line that opens the fence in which byte `start` stands, "" outside of one."""
    if start == 0 or body.startswith(_EVENT_HEADING[1:], start):
        return ""
    section = max(body.rfind(_EVENT_HEADING, 0, start), 0)
    opened = ""
    for line in _FENCE.finditer(body[section:start].decode("utf-8", "ignore")):
        fence, rest = line[1], line[2].strip()
        if not opened:
            opened = "" if fence[0] == "`" and "`" in rest else fence
        elif fence[0] == opened[0] and len(fence) >= len(opened) and not rest:
            opened = ""
    return f"{opened}\n" if opened else ""


def _absolute_links(tag: str, attribute: str, value: str) -> str | None:
    """A link into these pages could only have been put there to mislead."""
    return value if attribute != "href" or _ABSOLUTE.match(value) else None
