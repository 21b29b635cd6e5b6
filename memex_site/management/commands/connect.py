import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memex_site import serving
from memex_site.connect import dsh
from memex_site.connect.errors import EditRefused
from memex_site.connect.plan import Plan
from memex_site.connect.services import (
    AGENTS,
    connect_plan,
    disconnect_plan,
    installation,
    plan_apply,
    token_path,
)
from memex_site.tokens import TokenRefused
from sessions_app.cli.answer import visible


class Command(BaseCommand):
    help = "Connect an agent: its hooks, the MCP server and a token, in its user's settings."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent", choices=sorted(AGENTS))
        parser.add_argument("--undo", action="store_true", help="take back what connecting changed")
        parser.add_argument("--dry-run", action="store_true", help="show the change, and change nothing")
        parser.add_argument("--yes", action="store_true", help="don't ask")
        parser.add_argument(
            "--http",
            action="store_true",
            help="hooks and MCP over HTTP where the agent can; the token comes from the variable MX_TOKEN",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        agent, port = options["agent"], serving.running_port() or serving.DEFAULT_PORT
        try:
            if options["undo"]:
                plan = disconnect_plan(agent, port)
            else:
                plan = connect_plan(agent, port, http=options["http"])
            self._show(plan)
            if not plan.is_empty and not options["dry_run"]:
                if not options["yes"]:
                    self._ask()
                for line in plan_apply(plan):
                    self.stdout.write(visible(line))
        except (EditRefused, TokenRefused) as error:
            raise CommandError(visible(str(error))) from error
        self._end(plan, port, is_dry_run=options["dry_run"])

    def _show(self, plan: Plan) -> None:
        for edit in plan.changes:
            self.stdout.write(visible(edit.diff(), keep_lines=True))
            self.stdout.write("")
        if plan.token:
            file = token_path(plan.agent)
            what = "is revoked, and its file removed" if plan.is_undo else "is made, for this user alone"
            self.stdout.write(visible(f"The token in {file} {what}."))

    def _ask(self) -> None:
        if not sys.stdin.isatty():
            raise CommandError("Nothing was changed: there is no terminal to ask. Add --yes to do it.")
        try:
            answer = input("Do it? [y/N] ")
        except EOFError:
            answer = ""
        if answer.strip().lower() not in ("y", "yes"):
            raise CommandError("Nothing was changed.")

    def _end(self, plan: Plan, port: int, *, is_dry_run: bool) -> None:
        title = AGENTS[plan.agent]
        if plan.is_empty:
            self.stdout.write(
                f"{title} is not connected." if plan.is_undo else f"{title} is already connected."
            )
        elif is_dry_run:
            self.stdout.write("Nothing was changed: this was a dry run.")
        elif not plan.is_undo:
            self.stdout.write(f"{title} is connected from its next session on.")
        for note in plan.notes:
            self.stdout.write(visible(note))
        if plan.agent == dsh.AGENT and not plan.is_undo:
            self.stdout.write(visible(dsh.snippet(installation(port)), keep_lines=True))
