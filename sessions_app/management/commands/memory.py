"""`manage.py memory …`: everything a person may do, from the command line."""

import json
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError

from records.capacity.compress import STRATEGIES
from records.models import Kind, Record, Status
from records.queries import ORDERS
from records.search.assembling import BUDGET
from records.services import SETTABLE, Unreadable
from records.trash import BundleError
from records.written import KINDS
from sessions_app.cli import capacity, evictions, grep, joining, records, search, secrets, sessions
from sessions_app.cli.answer import Answer, Refused
from sessions_app.evicting import SurfaceChanged
from sessions_app.levels import LevelsOff, LevelSticky, SessionForgotten, SessionPaused
from sessions_app.locks import StoreBusy
from sessions_app.management.store import StoreCommand
from sessions_app.mirror import MirrorDamaged
from sessions_app.originals import NoOriginal
from sessions_app.pushlog import PushConflict
from sessions_app.queries import SessionNotFound

_REFUSALS = (
    Refused, SessionNotFound, SessionForgotten, NoOriginal, LevelSticky, MirrorDamaged, Unreadable, BundleError,
    FileNotFoundError, LevelsOff, SessionPaused, SurfaceChanged, PushConflict, StoreBusy,
)  # fmt: skip


def _count(text: str) -> int:
    number = int(text)
    if not 0 <= number < 2**31:
        raise ValueError(text)
    return number


# What argparse calls it in "invalid … value".
_count.__name__ = "count"


def _add_filters(command: ArgumentParser) -> None:
    command.add_argument("--workspace", metavar="DIR")
    command.add_argument("--session", metavar="ID")
    command.add_argument("--kind", action="append", choices=Kind.values)
    command.add_argument("--status", action="append", choices=Status.values)
    command.add_argument("--tag", metavar="TAG", help="a value, or name:value")
    command.add_argument("--agent", metavar="NAME")
    tier = command.add_mutually_exclusive_group()
    tier.add_argument("--cold", action="store_const", const=True, help="only cold records")
    tier.add_argument("--hot", dest="cold", action="store_const", const=False, help="only hot ones")


def _add_pool(command: ArgumentParser, *, dry_run: bool) -> None:
    command.add_argument("--workspace", metavar="DIR", help="the shared records of a folder (L3)")
    command.add_argument("--session", metavar="ID", help="the private records of a session (L2)")
    if dry_run:
        command.add_argument("--dry-run", action="store_true", help="only say what would go")


def _add_capacity(add: Callable[[str, Callable[[dict[str, Any]], Answer], str], ArgumentParser]) -> None:
    compress = add(
        "compress", capacity.compress, "move records to the cold tier, down to a share of the capacity"
    )
    _add_pool(compress, dry_run=True)
    compress.add_argument("--target-ratio", type=float, metavar="X", help="0.1 to 0.95")
    compress.add_argument("--min-age-hours", type=float, metavar="N")
    compress.add_argument("--strategy", choices=STRATEGIES, default=STRATEGIES[0])

    restore = add("restore", capacity.restore, "bring a record back from the cold tier")
    restore.add_argument("id", metavar="RECORD")

    gc = add("gc", capacity.gc, "move the oldest cold records to the trash, 5,000 at most")
    _add_pool(gc, dry_run=True)
    gc.add_argument("--keep-tokens", type=_count, required=True, metavar="N", help="what may stay cold")

    write = add("write", capacity.write, "have a text remembered, as your own")
    write.add_argument(
        "text", metavar="TEXT", help="- reads it from stdin; after -- if it begins with a dash"
    )
    _add_pool(write, dry_run=False)
    write.add_argument("--kind", choices=sorted(KINDS), default="note")
    write.add_argument("--title", default="", help="else its first line")
    write.add_argument("--summary", default="", help="else its first sentences")
    write.add_argument("--use-when", default="", metavar="TEXT")
    write.add_argument("--tag", action="append", metavar="TAG")
    write.add_argument("--entity", action="append", metavar="NAME")
    write.add_argument("--slot", default="", help='what it is about, such as "package manager"')
    write.add_argument("--confidence", type=float, metavar="X", help="0 to 1")
    write.add_argument("--supersedes", action="append", metavar="RECORD", help="what it takes the place of")

    pin = add("pin", capacity.pin, "pin a record: it stays hot and heads the catalog")
    pin.add_argument("id", metavar="RECORD")
    pin.add_argument("--unpin", action="store_true")

    status = add("status-set", capacity.status_set, "set a record's status")
    status.add_argument("id", metavar="RECORD")
    status.add_argument("status", choices=sorted(SETTABLE))


class Command(StoreCommand):
    help = (
        "List, search, open and read what is archived; write; compress; switch levels; pause; forget, with "
        "preview and undo."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

        def add(name: str, run: Callable[[dict[str, Any]], Answer], text: str) -> ArgumentParser:
            command: ArgumentParser = commands.add_parser(name, help=text, description=text)
            command.add_argument("--json", action="store_true", help="one JSON object")
            command.set_defaults(run=run)
            return command

        listing = add("list", records.listing, "records, the newest first")
        listing.add_argument("--workspace", metavar="DIR")
        listing.add_argument("--session", metavar="ID")
        listing.add_argument("--kind", action="append", choices=Kind.values)
        listing.add_argument("--status", action="append", choices=Status.values)
        listing.add_argument("--text", help="words in title, summary or use_when")
        listing.add_argument("--offset", type=_count, default=0)
        listing.add_argument("--limit", type=_count, default=50)

        found = add("search", search.search, "records by what they say, the best first")
        found.add_argument(
            "text",
            metavar="TEXT",
            help="a question, words, a name, a path; after -- if it begins with a dash",
        )
        _add_filters(found)
        found.add_argument("--limit", type=_count, default=10, metavar="N", help="100 at most")

        browse = add("nav", search.nav, "browse from workspaces, kinds and topics to records")
        browse.add_argument(
            "path",
            nargs="?",
            default="",
            metavar="PATH",
            help="such as kind/decision, topic, or a record's id",
        )
        browse.add_argument("--offset", type=_count, default=0)
        browse.add_argument("--limit", type=_count, default=50, help="500 at most")
        browse.add_argument("--sort", choices=sorted(ORDERS), default="updated")

        pack = add("assemble", search.assemble, "the passages to read for a task, within a budget of tokens")
        pack.add_argument("task", metavar="TASK")
        _add_filters(pack)
        pack.add_argument("--budget", type=_count, default=BUDGET, metavar="N", help="tokens, 100 or more")

        lines = add("grep", grep.grep, "lines of all records that match a regular expression")
        lines.add_argument(
            "pattern", metavar="PATTERN", help="RE2 syntax; after -- when it begins with a dash"
        )
        lines.add_argument("--workspace", metavar="DIR")
        lines.add_argument("--session", metavar="ID")
        lines.add_argument("--kind", action="append", choices=Kind.values)
        lines.add_argument("-F", "--literal", action="store_true", help="plain text, no expression")
        lines.add_argument("--case-sensitive", action="store_true")
        lines.add_argument("--context", type=_count, default=0, metavar="N", help="lines before and after")
        lines.add_argument("--limit", type=_count, default=200, metavar="N", help="lines shown")

        found = add("sessions", sessions.sessions, "sessions that were read")
        found.add_argument("--workspace", metavar="DIR")
        found.add_argument("--limit", type=_count, default=100)

        opened = add("open", records.opened, "a record's text, or the original rows behind it")
        opened.add_argument("id")
        opened.add_argument("--original", action="store_true", help="the log's rows, byte for byte")
        opened.add_argument("--offset", type=_count, default=0, help="characters; with --original bytes")
        opened.add_argument("--limit", type=_count, help="characters; with --original bytes")

        read = add("read", sessions.read, "a session's log: rows as they stood, or events as text")
        read.add_argument("session", metavar="SESSION", help="id, its beginning, or the path of its log")
        read.add_argument("--seq", metavar="A-B", help="events")
        read.add_argument("--rows", metavar="A-B", help="lines of the log, from 0")
        read.add_argument("--raw", action="store_true", help="exactly the original bytes of those rows")
        read.add_argument("--generation", type=_count, help="an older version of a rewritten log")

        add("levels", sessions.levels, "folders that agents worked in, and which are switched on")

        level = add("level", sessions.level, "switch L2 or L3 on, for a session or for a folder's sessions")
        level.add_argument("session", nargs="?", metavar="SESSION")
        level.add_argument("levels", nargs="+", choices=("l2", "l3", "off"),
                           help="off: only to take a folder's default back")  # fmt: skip
        level.add_argument("--workspace", metavar="DIR")

        pause = add("pause", sessions.pause, "read and archive nothing more: all, a folder or a session")
        pause.add_argument("session", nargs="?", metavar="SESSION")
        pause.add_argument("--workspace", metavar="DIR")
        pause.add_argument("--resume", action="store_true")

        joined = add(
            "join", joining.join, "folders that count as one workspace: worktrees, moved ones, parts"
        )
        joined.add_argument("folders", nargs="*", metavar="DIR")
        joined.add_argument("--apart", action="store_true", help="take these folders out again")
        joined.add_argument("--yes", action="store_true", help="do it; without it only a preview is shown")
        evict = add("evict", evictions.evict, "make room in the window of a session that its agent pushes")
        evict.add_argument("session", metavar="SESSION")
        how = evict.add_mutually_exclusive_group()
        how.add_argument("--plan", action="store_true", help="only show what would go (the default)")
        how.add_argument("--apply", action="store_true", help="archive it, and take it out of the window")
        how.add_argument("--undo", action="store_true", help="put what was evicted last back")
        evict.add_argument("--plan-id", default="", metavar="ID", help="as --plan printed it")
        evict.add_argument("--window", type=_count, metavar="N", help="tokens the window holds")
        evict.add_argument("--used", type=_count, metavar="N", help="tokens in it, else as the agent said")

        add("status", sessions.status, "where the store lies and what is in it")

        _add_capacity(add)

        forget = add("forget", records.forget, "move records or a whole session to the trash")
        forget.add_argument("ids", nargs="*", metavar="ID")
        forget.add_argument("--session", metavar="ID")
        forget.add_argument("--yes", action="store_true", help="do it; without it only a preview is shown")

        found = add(
            "secrets", secrets.secrets, "records with what looks like a password or key, and what to do"
        )
        found.add_argument(
            "action", choices=("list", "scan", "dismiss", "keep", "share"), nargs="?", default="list"
        )
        found.add_argument("id", nargs="?", metavar="RECORD")
        found.add_argument("--dry-run", action="store_true", help="scan: only say what would be tagged")

        trash = add("trash", records.trash, "what was forgotten: list, restore, purge")
        trash.add_argument("action", choices=("list", "restore", "purge"), nargs="?", default="list")
        trash.add_argument("bundle", nargs="?")
        trash.add_argument("--yes", action="store_true", help="purge for good")

    def handle(self, *args: Any, **options: Any) -> None:
        options["bold"] = self.stdout.isatty() and not options["no_color"]
        try:
            answer: Answer = options["run"](options)
            if answer.raw is not None:
                self._write_bytes(answer.raw)
            elif options["json"]:
                self.stdout.write(json.dumps(answer.data, ensure_ascii=False))
            else:
                for line in answer.lines:
                    self.stdout.write(line)
        except Record.DoesNotExist:
            raise CommandError("No such record. `manage.py memory list` shows what there is.") from None
        except _REFUSALS as error:
            raise CommandError(str(error)) from error
        except BrokenPipeError:
            # `memory read … | head` closed the pipe.
            return

    def _write_bytes(self, pieces: Any) -> None:
        out = getattr(self.stdout._out, "buffer", None)
        for piece in pieces:
            if out:
                out.write(piece)
            else:
                self.stdout.write(piece.decode("utf-8", "replace"), ending="")
        if out:
            out.flush()
