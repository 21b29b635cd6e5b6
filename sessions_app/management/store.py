"""The base of commands that work on the store."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from records.home import ensure_home
from sessions_app.sessionfile import StoreDamaged


class StoreCommand(BaseCommand):
    """Makes the store ready first: a command that is the first ever run, or the first after an upgrade,
    works like any other."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            ensure_home()
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            call_command("migrate", verbosity=0, interactive=False)
        try:
            return super().execute(*args, **options)
        except StoreDamaged as error:
            raise CommandError(str(error)) from error
