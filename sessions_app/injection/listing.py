"""The catalog of what is kept, as a message."""

from dataclasses import replace

from django.conf import settings

from records import queries
from records.catalog import CatalogCard, catalog
from records.models import Record
from records.secrets.queries import sensitive_ids
from records.services import Unreadable
from sessions_app.access import Access
from sessions_app.figures import PoolFigures

from .budget import Room
from .messages import CATALOG, Message
from .recall import digest, still_in_window
from .state import State
from .texts import CardLine, CatalogLines, catalog_text

MIN_CHARS = 600
# Of a standing record: more than one line is never shown.
_BODY_BYTES = 4_000
_POOLS = {"l2": "L2 private to this session", "l3": "L3 shared in this workspace"}


def catalog_message(
    access: Access, pools: tuple[PoolFigures, PoolFigures], state: State, handle: str, room: Room
) -> tuple[Message | None, State]:
    """None when there is nothing to list, it says what this window has been told already, or there is no
    room for it."""
    lines = _lines_of(access, pools)
    if lines.is_empty:
        return None, state
    text = _fitting(lines, handle, room)
    # The handle is the session's: what counts is what is listed.
    mark = digest(text.replace(handle, ""))
    if not text or mark == state.catalog_digest:
        return None, state
    ids = tuple(record_id for record_id in _ids(lines) if record_id in text)
    levels = tuple(pool.level for pool in pools if pool.is_on)
    return Message(CATALOG, text, ids, levels), replace(state.showing(ids), catalog_digest=mark)


def _fitting(lines: CatalogLines, handle: str, room: Room) -> str:
    """ "" when too little would be left of it."""
    most = room.characters(settings.MEMEX_CATALOG_MAX_CHARS)
    while most >= MIN_CHARS:
        text = catalog_text(lines, handle, most, settings.MEMEX_STANDING_MAX_CHARS)
        if room.holds(text):
            return text
        # Characters of Chinese take three bytes of a budget that counts bytes.
        most -= max(100, most // 8)
    return ""


def _ids(lines: CatalogLines) -> list[str]:
    sections = (lines.standing, lines.pinned, lines.open_threads, lines.recent)
    return [card.record_id for section in sections for card in section]


def _lines_of(access: Access, pools: tuple[PoolFigures, PoolFigures]) -> CatalogLines:
    found = catalog(access.scope)
    present = still_in_window(access, [card.id for card in found.cards])

    def shown(cards: list[CatalogCard]) -> list[CardLine]:
        return [_line(card) for card in cards if card.id not in present]

    marked = sensitive_ids(card.id for card in found.cards)

    def body(card: CatalogCard) -> str:
        return "" if card.id in marked else _body(access, card)

    standing = [card for card in found.standing if card.id not in present]
    return CatalogLines(
        standing=[
            replace(_line(card), text=body(card)) for card in standing[: settings.MEMEX_STANDING_LIMIT]
        ],
        pinned=shown(found.pinned),
        open_threads=shown(found.open_threads),
        recent=shown(found.recent),
        hot_tokens=found.hot_tokens,
        hot_count=found.hot_count,
        cold_tokens=found.cold_tokens,
        cold_count=found.cold_count,
        capacity=sum(pool.capacity for pool in pools if pool.is_on),
        pools=[_POOLS[pool.level] for pool in pools if pool.is_on],
    )


def _line(card: CatalogCard) -> CardLine:
    return CardLine(card.id, card.kind, card.title, card.use_when)


def _body(access: Access, card: CatalogCard) -> str:
    """ "" when it can't be read: its title stands in."""
    try:
        return queries.record_open(access.scope, card.id).body[:_BODY_BYTES].decode("utf-8", "replace")
    except (Record.DoesNotExist, Unreadable, OSError):
        return ""
