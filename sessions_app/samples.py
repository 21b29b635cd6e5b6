"""Bundled sessions to look around in on a machine without agents' logs; they go as one, without a trace."""

from pathlib import Path

from records import trash
from records.home import cold_dir, records_dir, sessions_dir
from records.tombstones import tombstones_remove
from records.totals import totals_recount

from . import sessionfile
from .forget import forget_plan, forget_resume, forget_run
from .jobs import job_cancel, job_queue
from .models import AgentSession, ImportWarning, Job, Source

SAMPLE_LOGS = Path(__file__).with_name("sample_logs")


def samples_load() -> Job:
    """Asks the worker to read and archive them, shared with their workspaces."""
    return job_queue("archive", paths=[str(SAMPLE_LOGS)], level="l3", is_sample=True)


def samples_present() -> bool:
    return Source.objects.filter(is_sample=True).exists()


def samples_remove() -> int:
    """Removes all that the samples left in the store, also what was made of them and what of them is in
    the trash, so that they can be loaded again. How many sessions it was."""
    _jobs_drop()
    forget_resume()
    read = AgentSession.objects.filter(is_sample=True).values_list("session_id", flat=True)
    found = Source.objects.filter(is_sample=True).values_list("session_id", flat=True)
    session_ids = sorted({*read, *found})
    removed = len(read)
    if not session_ids:
        return 0
    forget_run(forget_plan(session_ids=session_ids), actor="owner")
    for bundle in trash.bundle_list():
        if _is_of(bundle.manifest, set(session_ids)):
            trash.bundle_purge(bundle.id, actor="owner")
            tombstones_remove(bundle.manifest.tombstones)
    for session_id in session_ids:
        sessionfile.levels_remove(session_id)  # switched on, but not read before the job was cancelled
    ImportWarning.objects.filter(path__startswith=str(SAMPLE_LOGS)).delete()
    Source.objects.filter(is_sample=True).delete()
    totals_recount()  # sums of nothing would stay behind
    _empty_folders_remove()
    return removed


def _jobs_drop() -> None:
    jobs = Job.objects.filter(kind="archive", arguments__is_sample=True)
    for job in jobs:
        job_cancel(job)
    jobs.exclude(state=Job.State.RUNNING).delete()


def _is_of(manifest: trash.Manifest, session_ids: set[str]) -> bool:
    """Whether all that is in a bundle came from these sessions."""
    owners = {entry["id"] for entry in manifest.tombstones if entry["kind"] == "session"}
    owners |= {row["provenance"].get("sessionId", "") for row in manifest.rows.get("records", ())}
    return bool(owners) and owners <= session_ids


def _empty_folders_remove() -> None:
    """Workspaces of which nothing is left."""
    for above in (records_dir(), cold_dir(), sessions_dir()):
        for folder in above.iterdir():
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
