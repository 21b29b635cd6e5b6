"""Does a log go on where its mirror ends? Agents rewrite, truncate, copy and compress their logs."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .eventrefs import with_lanes
from .logs.streams import StreamDamaged, is_compressed, read_stream
from .mirror import Mirror, generations
from .models import AgentSession, Generation

# Reading all of a log of 100 MB each time it grows by a line would cost more than everything else; agents
# append, and what they rewrite they rewrite from some line on.
_COMPARED, _PLACES = 64 * 1024, 8


def generation_for(session: AgentSession, folder: Path, path: Path) -> tuple[Generation, bool]:
    """The generation that a source continues, or a new one, not saved yet, if it continues none; False with it when all
    of the source is mirrored already (an older copy of the same log)."""
    # Those on disk count too: rows may be missing after a rebuild that was cut short.
    rows = {generation.number: generation for generation in session.generations.all()}
    numbers = {*generations(folder), *rows}
    for number in sorted(numbers, reverse=True):
        match _relation(path, Mirror(folder, number)):
            case "continues":
                _view(session, number)
                return rows.get(number) or Generation(session=session, number=number), True
            case "contained" if number in rows:
                return rows[number], False
    number = max(numbers) + 1 if numbers else 0
    _view(session, number)
    return Generation(session=session, number=number), True


def _view(session: AgentSession, number: int) -> None:
    """The log as it is now is what counts, though it be one that was there before."""
    if session.view_generation != number:
        session.view_generation = number
        AgentSession.objects.filter(session_id__in=with_lanes([session.session_id])).update(
            view_generation=number
        )


def _relation(path: Path, mirror: Mirror) -> str:
    """`continues`: the source begins with all that is mirrored (compared at both ends and in between);
    `contained`: it is shorter and all of it is mirrored; `other`."""
    length = mirror.length
    compared = min(_COMPARED, length)
    # A compressed log is read from its beginning for each place.
    places = 1 if is_compressed(path) else _PLACES
    for start in sorted({(length - compared) * place // places for place in range(places + 1)}):
        there = _take(path, start, compared)
        if there != mirror.read(start, len(there)):
            return "other"
        if len(there) < compared:
            return "contained" if _is_prefix(path, mirror) else "other"
    return "continues"


def _take(path: Path, start: int, length: int) -> bytes:
    data = b""
    for chunk in _readable(path, start) if length else ():
        data += chunk
        if len(data) >= length:
            break
    return data[:length]


def _is_prefix(path: Path, mirror: Mirror) -> bool:
    offset = 0
    for chunk in _readable(path, 0):
        if mirror.read(offset, len(chunk)) != chunk:
            return False
        offset += len(chunk)
    return True


def _readable(path: Path, start: int) -> Iterator[bytes]:
    # A damaged compressed log is compared as far as it can be read; reading it says what is wrong.
    with suppress(StreamDamaged):
        yield from read_stream(path, start=start)
