"""The admin shows what is stored. Every change goes through the services, and so does a record's file."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from . import services
from .models import CompressionRun, PoolTotal, Record, SearchEntry, Status
from .recordfile import NewerSchemaError
from .scope import OWNER
from .search.search import LIMIT_MAX, search

# More would not fit into an address; the pages take as many.
FORGOTTEN_AT_ONCE = 200


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    """Rows that follow from files: to edit them here would only last until the next rebuild."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Record)
class RecordAdmin(ReadOnlyAdmin):
    list_display = ("title", "id", "kind", "scope", "status", "tokens", "cold", "workspace", "created_at")
    list_filter = ("kind", "scope", "status", "trust", "cold")
    search_fields = ("id", "title", "use_when", "session_id", "workspace")
    ordering = ("-created_at",)
    actions = ("pin", "unpin", "forget")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Record], search_term: str
    ) -> tuple[QuerySet[Record], bool]:
        """What is in an id, a title or a folder as it is typed, and what search finds."""
        found, duplicates = super().get_search_results(request, queryset, search_term)
        if search_term.strip():
            hits = search(OWNER, search_term, limit=LIMIT_MAX, statuses=Status.values).hits
            found = found | queryset.filter(pk__in=[hit.card.id for hit in hits])
        return found, duplicates

    @admin.action(description="Pin", permissions=["view"])
    def pin(self, request: HttpRequest, records: QuerySet[Record]) -> None:
        self._set_pinned(request, records, pinned=True)

    @admin.action(description="Unpin", permissions=["view"])
    def unpin(self, request: HttpRequest, records: QuerySet[Record]) -> None:
        self._set_pinned(request, records, pinned=False)

    @admin.action(description="Forget … (shows first what would go)", permissions=["view"])
    def forget(self, request: HttpRequest, records: QuerySet[Record]) -> HttpResponse | None:
        ids = list(records.values_list("pk", flat=True)[: FORGOTTEN_AT_ONCE + 1])
        if len(ids) > FORGOTTEN_AT_ONCE:
            self.message_user(
                request, f"At most {FORGOTTEN_AT_ONCE} can be forgotten at once.", messages.ERROR
            )
            return None
        return redirect(f"{reverse('sessions:forget_records')}?{urlencode({'id': ids}, doseq=True)}")

    def _set_pinned(self, request: HttpRequest, records: QuerySet[Record], *, pinned: bool) -> None:
        done = 0
        for record_id in list(records.values_list("pk", flat=True)):
            try:
                services.record_pin(record_id, pinned=pinned, actor="owner")
                done += 1
            except (services.Conflict, services.Unreadable, NewerSchemaError, Record.DoesNotExist) as error:
                self.message_user(request, f"{record_id}: {error}", messages.ERROR)
        self.message_user(request, f"{'Pinned' if pinned else 'Unpinned'}: {done} records.")

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions


@admin.register(PoolTotal)
class PoolTotalAdmin(ReadOnlyAdmin):
    list_display = (
        "workspace_key",
        "scope",
        "session_id",
        "kind",
        "status",
        "cold",
        "count",
        "tokens",
        "bytes",
    )
    list_filter = ("scope", "kind", "status", "cold")
    search_fields = ("workspace_key", "session_id")


@admin.register(SearchEntry)
class SearchEntryAdmin(ReadOnlyAdmin):
    list_display = ("number", "record_id", "workspace_key", "scope", "pending")
    list_filter = ("pending", "scope")
    search_fields = ("record__id", "workspace_key")
    ordering = ("-number",)


@admin.register(CompressionRun)
class CompressionRunAdmin(ReadOnlyAdmin):
    list_display = (
        "created_at",
        "level",
        "strategy",
        "before_hot",
        "after_hot",
        "cold_moved",
        "duration_ms",
        "actor",
    )
    list_filter = ("level", "strategy")
    search_fields = ("session_id", "actor", "errors")
    ordering = ("-id",)
