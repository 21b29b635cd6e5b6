"""The ASGI application that daphne serves."""

import os

from django.core.asgi import get_asgi_application

from .mcp.asgi import with_mcp

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memex_site.settings")

application = with_mcp(get_asgi_application())
