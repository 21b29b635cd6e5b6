from collections.abc import Iterable

from django import template

from records.hit_contexts import Row
from records.models import Record
from sessions_app import store_contexts
from sessions_app.models import Job
from sessions_app.page_queries import sessions_named
from sessions_app.titles import session_title

register = template.Library()


@register.simple_tag
def with_sessions(rows: Iterable[Row]) -> list[tuple[Row, str, str]]:
    """(row, id of its record's session or "" when that was not read, title of the session or "" where it says
    no more than the record's own)"""
    shown = [(row, str(row.record.provenance.get("sessionId") or row.record.session_id)) for row in rows]
    titles = {
        session.session_id: session_title(session)
        for session in sessions_named({session_id for _, session_id in shown})
    }
    return [
        (row, session_id if session_id in titles else "", _told_apart(titles.get(session_id, ""), row.record))
        for row, session_id in shown
    ]


def _told_apart(title: str, record: Record) -> str:
    return "" if record.title.startswith(title.removesuffix("…")) else title


@register.filter
def job_result(job: Job) -> str:
    return store_contexts.job_result(job)
