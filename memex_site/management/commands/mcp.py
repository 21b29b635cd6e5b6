from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from memex_site.mcp.callers import NotLetIn
from memex_site.mcp.stdio import serve, stdio_door, token_source
from sessions_app.opening import AGENT


class Command(BaseCommand):
    help = "Speak MCP on stdin and stdout: the memory tools, for an agent that starts this itself."
    # An agent waits for it at every start.
    requires_system_checks: Any = ()

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--agent", default="", metavar="NAME", help="its token is in agents/NAME.token")
        which.add_argument("--token-file", default="", metavar="PATH", help="a file that holds the token")

    def handle(self, *args: Any, **options: Any) -> None:
        agent = options["agent"]
        if agent and not AGENT.fullmatch(agent):
            raise CommandError(f"{agent!r} can't name an agent: up to 32 of a–z, 0–9 and -.")
        try:
            door = stdio_door(token_source(agent, options["token_file"]))
            # Better said now than at the first call.
            door.principal(None)
        except NotLetIn as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(f"The database can't be used ({error}). Run: manage.py migrate") from error
        serve(door)
