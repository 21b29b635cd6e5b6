"""The ASGI application that daphne serves."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memex_site.settings")

application = get_asgi_application()
