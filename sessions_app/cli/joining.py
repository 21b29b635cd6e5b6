"""`memory join`: folders that count as one workspace."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import Count

from records.models import Record
from records.models import Scope as Tier
from sessions_app.models import AgentSession, Source
from sessions_app.workspaces import workspace_joined, workspace_unjoin, workspaces_join, workspaces_read

from .answer import Answer, Refused, visible
from .sessions import folder, folder_key


def join(options: dict[str, Any]) -> Answer:
    """Without folders: what is joined. With them, what agents would see; `--yes` does it."""
    folders = [folder(each) for each in options["folders"]]
    if not folders:
        groups = workspaces_read()["joins"]
        return Answer({"joins": groups}, _groups_lines(groups))
    if options["apart"]:
        return _apart(folders)
    keys = list(dict.fromkeys(folder_key(each) for each in folders))
    if len(keys) < 2:
        raise Refused("Name two folders or more that are to count as one workspace.")
    together = sorted({other for key in keys for other in workspace_joined(key)})
    members = [_member(key) for key in together]
    data = {"members": members, "done": bool(options["yes"])}
    lines = [*_member_lines(members)]
    if not options["yes"]:
        return Answer(data, [*lines, "Nothing was changed yet: add --yes to join them."])
    workspaces_join(keys)
    return Answer(data, [*lines, "They count as one now. `memory join --apart DIR` takes one out again."])


def _apart(folders: Sequence[str]) -> Answer:
    taken = []
    for each in folders:
        if len(workspace_joined(folder_key(each))) == 1:
            raise Refused(f"{each} isn't joined with another folder. `memory join` lists what is.")
        workspace_unjoin(folder_key(each))
        taken.append(each)
    return Answer({"apart": taken}, [f"{visible(each)} stands for itself again." for each in taken])


def _member(key: str) -> dict[str, Any]:
    shared = Record.objects.filter(workspace_key=key, scope=Tier.WORKSPACE)
    sessions = AgentSession.objects.filter(workspace_key=key)
    agents = dict(sessions.order_by().values_list("agent").annotate(Count("pk")))
    return {"workspaceKey": key, "cwd": _cwd(key), "sharedRecords": shared.count(), "sessions": agents}


def _cwd(key: str) -> str:
    """A folder by its key: as its sessions, its records or the choices made for it name it."""
    sessions = AgentSession.objects.filter(workspace_key=key).exclude(cwd="").values_list("cwd", flat=True)
    records = Record.objects.filter(workspace_key=key).exclude(workspace="")
    if found := sessions.first() or records.values_list("workspace", flat=True).first():
        return found
    if entry := workspaces_read()["workspaces"].get(key):
        return str(entry["cwd"])
    folders = Source.objects.exclude(cwd="").order_by().values_list("cwd", flat=True).distinct()
    return next((cwd for cwd in folders if folder_key(cwd) == key), "")


def _member_lines(members: list[dict[str, Any]]) -> Iterator[str]:
    total = sum(member["sharedRecords"] for member in members)
    for member in members:
        agents = ", ".join(f"{count} of {agent}" for agent, count in sorted(member["sessions"].items()))
        yield (
            f"{visible(member['cwd'] or member['workspaceKey'])}: {member['sharedRecords']:,} shared records; "
            f"sessions: {agents or 'none'}"
        )
    yield (
        f"Agents with L3 on in any of these folders will see all {total:,} shared records. Private records (L2) "
        "stay private, and a token that is limited to one folder gains nothing."
    )


def _groups_lines(groups: list[list[str]]) -> Iterator[str]:
    for group in groups:
        yield "  +  ".join(visible(_cwd(key) or key) for key in group)
    if not groups:
        yield "No folders are joined. `memory join DIR DIR` shows what joining two would mean."
