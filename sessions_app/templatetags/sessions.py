from collections.abc import Iterable

from django import template

from records.models import Record
from sessions_app import store_contexts
from sessions_app.models import Job
from sessions_app.page_queries import sessions_named
from sessions_app.titles import session_title

register = template.Library()


@register.simple_tag
def with_sessions(records: Iterable[Record]) -> list[tuple[Record, str]]:
    """Records with the titles of their sessions; "" where that says no more than the record's own."""
    shown = list(records)
    ids = {record.id: str(record.provenance.get("sessionId") or record.session_id) for record in shown}
    titles = {session.session_id: session_title(session) for session in sessions_named(ids.values())}
    return [(record, _told_apart(titles.get(ids[record.id], ""), record)) for record in shown]


def _told_apart(title: str, record: Record) -> str:
    return "" if record.title.startswith(title.removesuffix("…")) else title


@register.filter
def job_result(job: Job) -> str:
    return store_contexts.job_result(job)
