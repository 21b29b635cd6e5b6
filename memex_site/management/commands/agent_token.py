import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memex_site.models import AgentToken
from memex_site.tokens import TokenRefused, token_create, token_revoke
from sessions_app.archiving import AGENTS
from sessions_app.cli.answer import when


class Command(BaseCommand):
    help = "Create, list and revoke the tokens that agents show to be let in."

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
        create = commands.add_parser("create", help="make a token; it is printed once")
        create.add_argument("name")
        create.add_argument(
            "--scope", default="read,write", help="of read, write, capacity, levels, with commas"
        )
        create.add_argument(
            "--workspace", metavar="DIR", nargs="+", action="extend", default=[], help="only these folders"
        )
        create.add_argument(
            "--agent",
            metavar="AGENT",
            help="whose sessions it may act for; by default the agent that NAME is called after, if any",
        )
        create.add_argument("--json", action="store_true")
        listing = commands.add_parser("list", help="the tokens there are")
        listing.add_argument("--json", action="store_true")
        revoke = commands.add_parser("revoke", help="a token is let in no more")
        revoke.add_argument("name")
        revoke.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            {"create": self._create, "list": self._list, "revoke": self._revoke}[options["command"]](options)
        except TokenRefused as error:
            raise CommandError(str(error)) from error

    def _create(self, options: dict[str, Any]) -> None:
        name = options["name"]
        agent = options["agent"] if options["agent"] is not None else (name if name in AGENTS else "")
        new = token_create(
            name,
            rights=[right.strip() for right in options["scope"].split(",") if right.strip()],
            folders=[str(Path(folder).expanduser().absolute()) for folder in options["workspace"]],
            agent=agent,
        )
        if options["json"]:
            self.stdout.write(json.dumps({"token": new.token, **_json(new.row)}, ensure_ascii=False))
            return
        self.stdout.write(new.token)
        self.stdout.write(f"Keep it now: it is not shown again. It may {', '.join(new.row.rights)}.")

    def _list(self, options: dict[str, Any]) -> None:
        rows = list(AgentToken.objects.order_by("-created_at", "-pk"))
        if options["json"]:
            self.stdout.write(json.dumps({"tokens": [_json(row) for row in rows]}, ensure_ascii=False))
            return
        for row in rows:
            state = "revoked" if row.revoked_at is not None else f"used {when(row.last_used_at)}"
            where = ", ".join(folder for _, folder in row.workspaces) or "all workspaces"
            self.stdout.write(
                f"{row.name}  {row.agent or '-'}  {','.join(row.rights)}  {where}  "
                f"made {when(row.created_at)}  {state}"
            )
        if not rows:
            self.stdout.write("No tokens. `manage.py agent_token create NAME` makes one.")

    def _revoke(self, options: dict[str, Any]) -> None:
        if not token_revoke(options["name"]):
            raise CommandError(
                f"No token {options['name']!r} that works. `manage.py agent_token list` shows them."
            )
        if options["json"]:
            self.stdout.write(json.dumps({"revoked": options["name"]}))
        else:
            self.stdout.write(f"{options['name']} is let in no more.")


def _json(row: AgentToken) -> dict[str, Any]:
    return {
        "name": row.name,
        "agent": row.agent,
        "scopes": row.rights,
        "workspaces": [folder for _, folder in row.workspaces],
        "createdAt": row.created_at,
        "lastUsedAt": row.last_used_at,
        "revokedAt": row.revoked_at,
    }
