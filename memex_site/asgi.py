"""The ASGI application that daphne serves."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memex_site.settings")

django = get_asgi_application()

# After Django has been set up.
from django.conf import settings  # noqa: E402

from .gate import Gate  # noqa: E402
from .mcp.asgi import mcp_app  # noqa: E402
from .polls import PollCache  # noqa: E402

application = Gate(
    django,
    mcp=mcp_app,
    hosts=settings.ALLOWED_HOSTS,
    polls=PollCache(
        settings.MEMEX_HOME / "index.db",
        [settings.MEMEX_HOME / "workspaces.json", settings.MEMEX_HOME / "forgotten.jsonl"],
    ),
)
