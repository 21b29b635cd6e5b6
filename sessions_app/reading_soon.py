"""Has a session's log read in a moment: by the worker, if it runs in this process."""

from pathlib import Path

from django.conf import settings

from . import worker
from .models import Source


def read_soon(session_id: str) -> None:
    """A hint: the worker's own passes come to it as well."""
    if settings.MEMEX_AUTO_ARCHIVE:
        for path in Source.objects.filter(session_id=session_id).values_list("path", flat=True):
            worker.nudge(Path(path))
