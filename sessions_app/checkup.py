"""What `doctor` looks at on the side of sessions: mirrors, their rows, blobs."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from records.home import blobs_dir, relative
from records.maintenance import doctor
from records.maintenance.doctor import Finding
from records.maintenance.searchcheck import search_findings
from records.tombstones import is_forgotten

from . import sessionfile
from .counts import session_counts
from .eventrefs import events_of_mirror, with_lanes
from .forget import forget_resume
from .mirror import Mirror, MirrorDamaged, generations
from .models import AgentSession, Generation, SessionFile
from .rebuild import archives_relink, mirror_check, session_rebuild


def store_findings(*, repair: bool) -> Iterator[Finding]:
    """Everything `doctor` says, in the order in which it is mended."""
    if repair:
        for bundle_id in forget_resume():
            yield Finding("unfinished-bundle", bundle_id, "Forgetting or restoring was cut short.", True)
    yield from doctor.findings(repair=repair)
    yield from search_findings(repair=repair)
    known: list[str] = []
    for folder, data in sessionfile.session_folders():
        known.append(data["session_id"])
        yield from _session_findings(folder, data, repair=repair)
    for folder, problem in sessionfile.damaged_folders():
        yield Finding("damaged-session", relative(folder), problem)
    orphans = AgentSession.objects.exclude(session_id__in=with_lanes(known))
    for session_id in orphans.values_list("session_id", flat=True):
        yield Finding("session-without-mirror", session_id, "It has rows, but its folder is gone.")
    yield from _blob_findings(repair=repair)


def _session_findings(folder: Path, data: dict[str, Any], *, repair: bool) -> Iterator[Finding]:
    session_id = data["session_id"]
    if is_forgotten("session", session_id):
        yield Finding("forgotten-session", session_id, f"It is forgotten, but {folder} is there.")
        return
    try:
        mirror_check(folder, data)
    except MirrorDamaged as damage:
        yield Finding("damaged-mirror", session_id, str(damage))
        return
    problem = _problem(folder, session_id)
    if problem and repair:
        session_rebuild(folder, data)
        archives_relink(with_lanes([session_id]))
    if problem:
        yield Finding(problem[0], session_id, problem[1], repair)


def _problem(folder: Path, session_id: str) -> tuple[str, str] | None:
    """What a rebuild of the session's rows mends."""
    session = AgentSession.objects.filter(session_id=session_id).first()
    for number in generations(folder):
        length = Mirror(folder, number).length
        if session is None:
            return "mirror-without-session", "Its mirror has no rows."
        read = Generation.objects.filter(session=session, number=number).first()
        if read is None or read.parsed_bytes > length:
            return "generation-disagrees", f"Generation {number} and its mirror disagree."
        last = events_of_mirror(session_id, number).order_by("-row").first()
        if last and last.offset + last.length > length:
            return "events-beyond-mirror", f"Event #{last.seq} ends behind its mirror."
    if session and session_counts(session)[0] != session.event_count:
        return "events-missing", "Its events are not as many as were read."
    return None


def _blob_findings(*, repair: bool) -> Iterator[Finding]:
    referenced = set(SessionFile.objects.exclude(sha256="").values_list("sha256", flat=True))
    found = {path.name: path for path in sorted(blobs_dir().glob("*/*")) if path.is_file()}
    for sha256, path in found.items():
        if sha256 not in referenced:
            if repair:
                path.unlink()
            yield Finding("unreferenced-blob", sha256, "No session points to it.", repair)
        elif hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
            yield Finding("damaged-blob", sha256, "Its bytes are not those it was named for.")
    for sha256 in sorted(referenced - found.keys()):
        yield Finding("missing-blob", sha256, "A session points to it, and it is gone.")
