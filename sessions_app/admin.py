"""The admin of sessions: what was read from logs is shown; only a level can be switched on."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from records.admin import ReadOnlyAdmin
from records.tombstones import is_forgotten

from .levels import level_enable
from .models import (
    AgentSession,
    ArchivedCompaction,
    Compaction,
    Event,
    Generation,
    ImportWarning,
    Injection,
    Job,
    L1Eviction,
    Lease,
    OpenedSession,
    Receipt,
    SessionFile,
    SessionSettings,
    Source,
)
from .workspaces import LEVELS


@admin.register(AgentSession)
class AgentSessionAdmin(ReadOnlyAdmin):
    list_display = ("session_id", "agent", "title", "cwd", "relation", "event_count", "last_event_at")
    list_filter = ("agent", "relation", "is_sample")
    search_fields = ("session_id", "title", "cwd")
    ordering = ("-last_event_at",)


@admin.register(Source)
class SourceAdmin(ReadOnlyAdmin):
    list_display = ("path", "agent", "session_id", "cwd", "size", "missing_since")
    list_filter = ("agent", "relation", "is_sample")
    search_fields = ("path", "session_id", "cwd")


@admin.register(Generation)
class GenerationAdmin(ReadOnlyAdmin):
    list_display = ("session_id", "number", "parsed_rows", "parsed_bytes", "open_tail")
    search_fields = ("session__session_id",)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("session_id", "seq", "type", "role", "source", "surface", "tokens", "preview")
    list_filter = ("surface", "role", "source")
    search_fields = ("session__session_id", "record_id")
    ordering = ("-pk",)


@admin.register(SessionFile)
class SessionFileAdmin(ReadOnlyAdmin):
    list_display = ("path", "session_id", "row", "state", "size")
    list_filter = ("state",)
    search_fields = ("path", "session__session_id", "sha256")


@admin.register(Compaction)
class CompactionAdmin(ReadOnlyAdmin):
    list_display = ("session_id", "compaction_id", "kind", "state", "trigger", "tokens_before", "record_id")
    list_filter = ("kind", "state", "trigger")
    search_fields = ("session__session_id", "compaction_id", "record_id")


@admin.register(ArchivedCompaction)
class ArchivedCompactionAdmin(ReadOnlyAdmin):
    list_display = ("session_id", "compaction_id", "record_id", "created_at")
    search_fields = ("session_id", "compaction_id", "record_id")


@admin.register(L1Eviction)
class L1EvictionAdmin(ReadOnlyAdmin):
    list_display = ("session_id", "start_seq", "end_seq", "shadowed_tokens", "record_id")
    search_fields = ("session_id", "record_id")


@admin.register(Receipt)
class ReceiptAdmin(ReadOnlyAdmin):
    list_display = ("session_id", "record_id", "created_at", "offered", "delivered_at")
    search_fields = ("session_id", "record_id")


@admin.register(ImportWarning)
class ImportWarningAdmin(ReadOnlyAdmin):
    list_display = ("path", "row", "code", "message", "created_at")
    list_filter = ("code",)
    search_fields = ("path", "session_id", "message")
    ordering = ("-created_at",)


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = ("kind", "state", "done", "total", "message", "created_at", "updated_at")
    list_filter = ("kind", "state")
    ordering = ("-pk",)


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin):
    list_display = ("name", "holder", "heartbeat_at")


class SessionSettingsForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable at run time
    l2 = forms.BooleanField(label="L2, private to the session", required=False)
    l3 = forms.BooleanField(label="L3, shared by its workspace", required=False)

    class Meta:
        model = SessionSettings
        fields = ("session_id", *LEVELS)

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        for name in LEVELS:
            if getattr(self.instance, name) and not given.get(name):
                self.add_error(name, "A level that is on stays on.")
        if not any(given.get(name) for name in LEVELS):
            self.add_error(None, "Switch on at least one level.")
        self._check_session(self.instance.pk or given.get("session_id", ""))
        return given

    def _check_session(self, session_id: str) -> None:
        known = (AgentSession, Source, SessionSettings)
        if is_forgotten("session", session_id):
            self.add_error(None, "This session was forgotten. Restore it from the trash first.")
        elif not any(model.objects.filter(session_id=session_id).exists() for model in known):
            self.add_error(None, "There is no session of this id.")


@admin.register(SessionSettings)
class SessionSettingsAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    """The switches themselves are in a file as well: they are saved by the service that writes both."""

    form = SessionSettingsForm
    list_display = ("session_id", "l2", "l3", "updated_at")
    list_filter = LEVELS
    search_fields = ("session_id",)
    ordering = ("-updated_at",)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return ("session_id",) if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # Without its row a session would be off again.
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        level_enable(obj.session_id, *(name for name in LEVELS if form.cleaned_data[name]))


@admin.register(OpenedSession)
class OpenedSessionAdmin(ReadOnlyAdmin):
    list_display = ("session_id", "agent", "cwd", "token_id", "opened_at", "heard_at")
    list_filter = ("agent",)
    search_fields = ("session_id", "cwd")
    ordering = ("-heard_at",)


@admin.register(Injection)
class InjectionAdmin(ReadOnlyAdmin):
    list_display = ("session_id", "window", "is_fresh", "injected_at", "noticed_at")
    search_fields = ("session_id",)
