"""The base of commands that work on the store."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from filelock import FileLock

from records.home import ensure_home, home, index_path
from sessions_app.sessionfile import StoreDamaged


class StoreCommand(BaseCommand):
    """Makes the store ready first: a command that is the first ever run, or the first after an upgrade,
    works like any other."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            ensure_home()
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        try:
            if _is_behind():
                # Of two that start at once one migrates, and the other finds it done.
                with FileLock(home() / "migrate.lock"):
                    if _is_behind():
                        call_command("migrate", verbosity=0, interactive=False)
            return super().execute(*args, **options)
        except StoreDamaged as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            if not any(sign in str(error) for sign in _CORRUPT):
                raise
            raise CommandError(
                f"{index_path()} is damaged ({error}). It can be made anew from the files: move it and "
                "index.db-wal, index.db-shm aside, then run `manage.py reindex`."
            ) from error


# SQLite's own words.
_CORRUPT = ("malformed", "not a database", "disk image")


def _is_behind() -> bool:
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
