"""What is named in an address, or 404."""

from django.http import Http404

from sessions_app.levels import pool_session_id
from sessions_app.models import AgentSession, Source
from sessions_app.page_queries import session_named


def load_session(session_id: str) -> AgentSession:
    if session := session_named(session_id):
        return session
    raise Http404("No session of this id has been read.")


def load_source(session_id: str) -> Source:
    """The log of a session that nothing was read of."""
    source = Source.objects.filter(session_id=session_id).order_by("-mtime_ns").first()
    if source is None:
        raise Http404("There is no session of this id.")
    return source


def load_pool(session_id: str) -> tuple[str, list[str]]:
    """Whose switches a session uses, read or not, and the paths of its logs."""
    sources = list(Source.objects.filter(session_id=session_id).order_by("path"))
    session = AgentSession.objects.filter(session_id=session_id).first()
    if session:
        pool = session.pool_session_id
    else:
        source = load_source(session_id)
        pool = pool_session_id(source.session_id, source.parent_id, source.relation)
    return pool, [source.path for source in sources if source.missing_since is None]


def whole_number(text: str | None) -> int | None:
    """None for nothing; 404 for what is no number."""
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 15):
        raise Http404("This address names no place in the session.")
    return int(text)
