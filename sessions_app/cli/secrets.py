"""`memory secrets`: what looks like a password or key, and what its owner decides of it."""

from collections.abc import Callable
from typing import Any

from django.conf import settings

from records.models import Record
from records.recordfile import NewerSchemaError
from records.secrets import services
from records.secrets.policy import OFF, SENSITIVE
from records.secrets.queries import Review, reviews
from records.secrets.scanning import secrets_scan
from records.services import Conflict, Unreadable
from sessions_app.archiverows import previews_redact
from sessions_app.owner import ACTOR

from .answer import Answer, Refused, visible

_DECIDE: dict[str, Callable[..., Record]] = {
    "keep": services.secret_keep,
    "share": services.secret_share,
}


def secrets(options: dict[str, Any]) -> Answer:
    action, record_id = options["action"], options["id"]
    if action not in ("list", "scan") and not record_id:
        raise Refused(f"Name the record: `memory secrets {action} RECORD`.")
    if action == "list":
        return _listed()
    if action == "scan":
        return _scan(dry_run=options["dry_run"])
    try:
        if action == "dismiss":
            cleared = services.secret_dismiss(record_id, actor=ACTOR)
            lines = [
                f"{each.id}: no find left; its scope is {each.scope}. It is not raised again."
                for each in cleared
            ]
            return Answer({"cleared": [{"id": each.id, "scope": each.scope} for each in cleared]}, lines)
        record = _DECIDE[action](record_id, actor=ACTOR)
    except (
        services.NotSensitive,
        services.NotMeantToBeShared,
        Conflict,
        Unreadable,
        NewerSchemaError,
        OSError,
    ) as error:
        raise Refused(str(error)) from error
    return Answer({"id": record.id, "scope": record.scope}, [f"{record.id}: its scope is {record.scope}."])


def _listed() -> Answer:
    found = reviews()
    lines = [line for review in found for line in _lines(review)]
    if not found:
        lines = [
            "Nothing that looks like a secret is known. `memory secrets scan` looks through all records."
        ]
    if settings.MEMEX_SENSITIVE_POLICY == OFF:
        lines.append("New records are not looked through: MEMEX_SENSITIVE_POLICY is off.")
    return Answer({"records": [_as_json(review) for review in found]}, lines)


def _lines(review: Review) -> list[str]:
    record, decision = review.record, review.decision
    where = ", ".join(f"{rule}{'' if seq is None else f' in #{seq}'}" for rule, seq in review.places[:5])
    more = f" and {len(review.places) - 5} more" if len(review.places) > 5 else ""
    return [
        f"{record.id}  {decision.state:<6}  {record.scope:<9}  {visible(record.title)}",
        f"    {visible(where)}{more}",
    ]


def _as_json(review: Review) -> dict[str, Any]:
    return {
        "id": review.record.id,
        "title": review.record.title,
        "scope": review.record.scope,
        "state": review.decision.state,
        "policy": review.decision.policy,
        "count": review.count,
        "finds": [{"rule": rule, "seq": seq} for rule, seq in review.places],
    }


def _scan(*, dry_run: bool) -> Answer:
    if settings.MEMEX_SENSITIVE_POLICY == OFF:
        raise Refused("MEMEX_SENSITIVE_POLICY is off: nothing is looked for.")
    troubles: list[str] = []
    found = list(secrets_scan(actor=ACTOR, dry_run=dry_run, say=troubles.append))
    new = [each for each in found if each.is_new]
    for each in new:
        if not dry_run:
            previews_redact(each.record.id, each.record.provenance)
    lines = [
        f"{each.record.id}  {each.record.scope:<9}  {visible(', '.join(each.decision.rules))}  "
        f"{visible(each.record.title) if SENSITIVE in each.record.tags else ''}".rstrip()
        for each in new
    ]
    did = "would be tagged and listed" if dry_run else "are tagged and listed"
    lines.append(
        f"{len(found)} records hold what looks like a secret; {len(new)} of them {did} for the first time."
    )
    if any(each.record.scope == "workspace" for each in found):
        lines.append("Shared ones stay shared until you say: `memory secrets keep RECORD` makes one private.")
    data = {
        "records": [
            {
                "id": each.record.id,
                "scope": each.record.scope,
                "rules": each.decision.rules,
                "isNew": each.is_new,
            }
            for each in found
        ],
        "unreadable": troubles,
        "dryRun": dry_run,
    }
    return Answer(data, [*lines, *map(visible, troubles)])
