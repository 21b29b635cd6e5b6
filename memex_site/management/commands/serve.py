import errno
from contextlib import ExitStack
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from memex_site import serving, signin
from memex_site.background import start_background
from records.home import ensure_home


class Command(BaseCommand):
    help = "Serve the pages on 127.0.0.1 and archive in the background; prints a sign-in link."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--port",
            type=int,
            default=serving.DEFAULT_PORT,
            help=f"default {serving.DEFAULT_PORT}; 0 takes any free one",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            ensure_home()
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        _require_migrated()
        port: int = options["port"]
        try:
            serving.try_bind(port)
        except (OSError, OverflowError) as error:
            raise CommandError(_unusable(port, error)) from error
        self._serve(port)

    def _serve(self, port: int) -> None:
        # Imported here: it takes longer than all the rest, and replaces the process's event loop.
        from daphne.server import Server
        from twisted.web.http import HTTPChannel

        from memex_site.asgi import application

        # A long question is in the address, and that in a header once more.
        HTTPChannel.MAX_LENGTH = HTTPChannel.totalHeadersSize = serving.REQUEST_HEAD_BYTES

        with ExitStack() as running:

            def ready() -> None:
                actual = server.listening_addresses[0][1]
                running.enter_context(serving.announced(actual))
                running.callback(start_background())
                self._greet(actual)

            # Without an action logger there is no access log, so nothing that was asked for is written down.
            server = Server(
                application,
                endpoints=[f"tcp:port={port}:interface={serving.HOST}"],
                ready_callable=ready,
                server_name=serving.SERVER_NAME,
            )
            server.run()
            if server.abort_start:
                raise CommandError(f"Port {port} could not be opened.")

    def _greet(self, port: int) -> None:
        link = signin.link_create()
        self.stdout.write(f"Memex serves {serving.url(port)}  (stop with Ctrl+C)")
        self.stdout.write(f"Sign in within 15 minutes, once: {serving.url(port, link.path)}")
        self.stdout.write("Another link: manage.py signin_link")
        self.stdout.flush()


def _require_migrated() -> None:
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CommandError("The database is not at this version's state yet. Run: manage.py migrate")


def _unusable(port: int, error: OSError | OverflowError) -> str:
    other = serving.DEFAULT_PORT if port != serving.DEFAULT_PORT else serving.DEFAULT_PORT + 1
    advice = f"Another port: make run PORT={other}"
    if not isinstance(error, OSError) or error.errno != errno.EADDRINUSE:
        return f"Port {port} can't be used ({error}). {advice}"
    if serving.port_is_memex(port):
        return f"Memex is already running at {serving.url(port)} (to sign in there: manage.py signin_link). {advice}"
    return f"Port {port} is taken by another program. {advice}"
