"""What the pages of the store as a whole show: workspaces, archive runs, the trash."""

from collections.abc import Iterable
from dataclasses import dataclass

from records import trash
from records.trash import Bundle

from .levels import Levels, default_levels
from .models import Job
from .overview import WorkspaceRow
from .workspaces import workspaces_read


@dataclass(frozen=True)
class WorkspaceChoice:
    """A folder with the levels that its new sessions start with."""

    row: WorkspaceRow
    levels: Levels
    is_paused: bool = False

    @property
    def name(self) -> str:
        return self.row.cwd or self.row.key

    @property
    def latest_ms(self) -> int:
        return self.row.latest_ns // 1_000_000

    @property
    def state(self) -> str:
        """Sessions keep their own switches: the folder's only holds for those that have none yet."""
        on = self.row.on
        if not on and not self.levels.any:
            return "off"
        kept = f"{on} session{'' if on == 1 else 's'} on; " if on else ""
        return f"{kept}new sessions: {self.levels}"

    @property
    def is_off(self) -> bool:
        return not (self.row.on or self.levels.any or self.is_paused)


def workspace_choices(rows: Iterable[WorkspaceRow]) -> list[WorkspaceChoice]:
    paused = workspaces_read()["paused"]["workspaces"]
    return [WorkspaceChoice(row, default_levels(row.key), row.key in paused) for row in rows]


def job_result(job: Job) -> str:
    """What an archive run that is done has done."""
    counts = {name: job.result.get(name) or 0 for name in ("archived", "closing", "already", "pending")}
    parts = [f"{counts['archived']} compaction{'' if counts['archived'] == 1 else 's'} archived"]
    if counts["closing"]:
        parts.append(f"{counts['closing']} ended session{'' if counts['closing'] == 1 else 's'}")
    if counts["already"]:
        parts.append(f"{counts['already']} there before")
    if counts["pending"]:
        parts.append(f"{counts['pending']} waiting")
    events, files = job.result.get("events") or 0, job.result.get("files") or 0
    return f"{', '.join(parts)}; {events:,} new events in {files:,} files"


def job_end(job: Job) -> str:
    """How a run ended, in a sentence."""
    if job.state == Job.State.DONE:
        return f"Archive run done: {job_result(job)}."
    if job.state == Job.State.FAILED:
        return f"The archive run failed: {job.message}"
    return f"The archive run was cancelled after {job.done} of {job.total} files."


@dataclass(frozen=True)
class TrashRow:
    bundle: Bundle

    @property
    def title(self) -> str:
        """A session is called by its first record: its own title went with it."""
        manifest = self.bundle.manifest
        cards = sorted(manifest.rows.get("records", []), key=lambda card: (card["created_at"], card["id"]))
        if cards and (self.session_ids or len(cards) == 1):
            return str(cards[0]["title"])
        return self.session_ids[0] if self.session_ids else manifest.title

    @property
    def session_ids(self) -> list[str]:
        return [entry["id"] for entry in self.bundle.manifest.tombstones if entry["kind"] == "session"]

    @property
    def kind(self) -> str:
        count = len(self.bundle.manifest.rows.get("records", []))
        records = f"{count} record{'' if count == 1 else 's'}"
        if not self.session_ids:
            return records
        more = len(self.session_ids) - 1
        helpers = f" and {more} sub-agent{'' if more == 1 else 's'}" if more else ""
        return f"session{helpers}, {records}"


def trash_row_of(session_id: str) -> TrashRow | None:
    """The bundle that holds a forgotten session; None when it was purged."""
    rows = map(TrashRow, trash.bundle_list())
    return next((row for row in rows if session_id in row.session_ids), None)
