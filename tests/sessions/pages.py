"""What tests of pages share."""

from sessions_app.jobs import job_next, job_run
from sessions_app.models import Job
from sessions_app.overview import workspaces_found

from .stories import session_id

HTMX = {"HX-Request": "true"}
HOSTILE = "<script>alert(1)</script><svg onload=alert(2)>\"'><img src=x>"
SESSION = session_id(1)
PAGE = f"/sessions/{SESSION}/"


def work(job: Job) -> None:
    """What the background worker does."""
    assert job_next() == job
    job_run(job, lambda: False)


def workspace_keys() -> set[str]:
    return {row.key for row in workspaces_found()}
