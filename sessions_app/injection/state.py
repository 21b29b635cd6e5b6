"""What a session has been shown in its present window: kept over a restart, reset when a window begins anew."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from sessions_app.models import Compaction, Injection

SHOWN_MAX = 80
# A second start of the same window, told of late: Codex hands on several at once.
SAME_WINDOW_MS = 60_000
_UNCONFIRMED = "?"
_SHARED = (
    "shown", "last_recall", "catalog_digest", "is_fresh", "window", "injected_at", "noticed_at",
    "noticed_percent",
)  # fmt: skip


@dataclass(frozen=True)
class State:
    """Fields as in models.Injection. `version` 0: not stored yet."""

    session_id: str
    shown: tuple[str, ...] = ()
    last_recall: str = ""
    catalog_digest: str = ""
    is_fresh: bool = True
    window: str = ""
    injected_at: int | None = None
    noticed_at: int | None = None
    noticed_percent: dict[str, int] = field(default_factory=dict)
    version: int = 0

    def showing(self, record_ids: Iterable[str]) -> "State":
        """With these counted as shown; the oldest are forgotten first."""
        added = [record_id for record_id in dict.fromkeys(record_ids) if record_id not in self.shown]
        return replace(self, shown=(*self.shown, *added)[-SHOWN_MAX:])

    def begun(self, window: str) -> "State":
        """In a new window nothing has been shown. Notices of capacity concern the user, not the window."""
        return replace(self, shown=(), last_recall="", catalog_digest="", is_fresh=True, window=window)


def state_of(session_id: str) -> State:
    """As it is in the window that the log knows of."""
    row = Injection.objects.filter(pk=session_id).first()
    state = _state(row) if row else State(session_id)
    return _in_window(state, window_of(session_id))


def _state(row: Injection) -> State:
    values: dict[str, Any] = {name: getattr(row, name) for name in _SHARED}
    values["shown"] = tuple(values["shown"])
    return State(row.session_id, **values, version=row.version)


def window_of(session_id: str) -> str:
    """The compaction or eviction with which the session's present window began, "" for its first one. Tool
    results that were cleared out of it (microcompact) don't make a new one."""
    begun = Compaction.objects.filter(session_id=session_id).exclude(kind="microcompact")
    begun = begun.exclude(state__in=(Compaction.State.FAILED, Compaction.State.EMPTY))
    newest = begun.order_by("-generation", "-at_seq").values_list("compaction_id", flat=True)
    return newest.first() or ""


def _in_window(state: State, window: str) -> State:
    if state.window.startswith(_UNCONFIRMED):
        before = state.window.removeprefix(_UNCONFIRMED)
        # What a hook told of has come into the log.
        return state if window == before else replace(state, window=window)
    return state if window == state.window else state.begun(window)


def window_began(session_id: str, now: int) -> None:
    """A hook says that a compaction or a clearing has just happened, before the log does."""
    state = state_of(session_id)
    is_told_again = state.injected_at is not None and now - state.injected_at < SAME_WINDOW_MS
    if state.is_fresh or is_told_again:
        return
    state_save(state, state.begun(_UNCONFIRMED + state.window))


def state_save(before: State, after: State) -> bool:
    """False when another request has changed it meanwhile: what was made of it must not be said."""
    values = {name: getattr(after, name) for name in _SHARED}
    values["shown"] = list(after.shown)
    values["version"] = before.version + 1
    if before.version:
        changed = Injection.objects.filter(pk=before.session_id, version=before.version).update(**values)
        return bool(changed)
    try:
        with transaction.atomic():
            Injection.objects.create(session_id=before.session_id, **values)
    except IntegrityError:
        return False
    return True


def shown_forget(record_ids: Collection[str]) -> None:
    """Forgotten records leave what sessions were shown."""
    gone = set(record_ids)
    for row in Injection.objects.iterator() if gone else ():
        kept = [record_id for record_id in row.shown if record_id not in gone]
        if kept != row.shown:
            Injection.objects.filter(pk=row.pk).update(shown=kept, version=F("version") + 1)
