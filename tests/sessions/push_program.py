"""Pushes to a store of its own and dies where it is told to, or tells what the store holds.

`python -m tests.sessions.push_program events|compaction|eviction|look`; prints JSON."""

import json
import os
import signal
import sys
from typing import Any, NoReturn

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "memex_site.settings"
django.setup()

from django.core.management import call_command  # noqa: E402

from records.home import ensure_home  # noqa: E402
from records.models import Record  # noqa: E402
from sessions_app import evicting, push, pushlog  # noqa: E402
from sessions_app.archiving import archive_run  # noqa: E402
from sessions_app.checkup import store_findings  # noqa: E402
from sessions_app.models import Compaction, Event, L1Eviction  # noqa: E402
from sessions_app.surface import session_surface  # noqa: E402
from tests.sessions.pushes import SESSION, ids, opened, turns  # noqa: E402
from tests.sessions.pushes import push as events_push  # noqa: E402


def _die(*_: Any, **__: Any) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def _killed(where: str) -> None:
    opened(SESSION, "l3", context_window=1_000)
    events_push(turns(10, size=50))
    match where:
        case "events":
            pushlog.Batch = _die  # reached when the mirror is ahead of the rows
            events_push(turns(2, 10))
        case "compaction":
            push.session_archive = _die
            push.session_compaction_push(SESSION, "c1", summary="gist", removed_ids=ids(turns(2)))
        case "eviction":
            evicting.note_row = _die
            evicting.eviction_apply(SESSION)


def main(where: str) -> None:
    ensure_home()
    call_command("migrate", verbosity=0)
    if where != "look":
        _killed(where)
    archived = archive_run()
    print(
        json.dumps(
            {
                "read": archived.events,
                "archived": archived.archived,
                "events": Event.objects.count(),
                "window": len(session_surface(SESSION).messages),
                "records": Record.objects.count(),
                "evictions": L1Eviction.objects.count(),
                "states": sorted(Compaction.objects.values_list("state", flat=True)),
                "findings": [str(finding) for finding in store_findings(repair=False)],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
