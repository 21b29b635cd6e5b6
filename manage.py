#!/usr/bin/env python
"""Memex's command line: every scheduled and manual operation is a management command."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memex_site.settings")
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        _ = settings.INSTALLED_APPS
    except ImproperlyConfigured as error:
        sys.exit(f"Memex can't start: {error}")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
