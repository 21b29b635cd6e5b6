import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memex_site import serving, signin


class Command(BaseCommand):
    help = "Print a link that signs this machine's owner in: valid for 15 minutes, once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, help="the server's port (default: the running server's)")
        parser.add_argument("--json", action="store_true", help="print {url, expiresAt, running}")

    def handle(self, *args: Any, **options: Any) -> None:
        running = serving.running_port()
        link = signin.link_create()
        url = serving.url(options["port"] or running or serving.DEFAULT_PORT, link.path)
        if options["json"]:
            answer = {"url": url, "expiresAt": link.expires_at, "running": running is not None}
            self.stdout.write(json.dumps(answer))
            return
        self.stdout.write(url)
        if running is None and not options["port"]:
            self.stderr.write("No server of this store is running. Start it first: make run")
