from django.contrib import admin, messages
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest

from records.admin import ReadOnlyAdmin

from . import tokens
from .models import AgentToken, IdempotencyKey, SigninLink

admin.site.site_header = admin.site.site_title = "Memex"
admin.site.index_title = "Everything that is stored"

# There is one person, who could only lock themselves out here.
admin.site.unregister((User, Group))


@admin.register(SigninLink)
class SigninLinkAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    """Links that still work. Deleting one withdraws it; only a command makes one."""

    list_display = ("token_hash", "expires_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: SigninLink | None = None) -> bool:
        return False


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ReadOnlyAdmin):
    """Answers kept for requests that may be sent again."""

    list_display = ("key", "token_id", "created_at")
    search_fields = ("key",)
    exclude = ("answer",)


@admin.register(AgentToken)
class AgentTokenAdmin(ReadOnlyAdmin):
    """Made on the Connect page or by a command, which show a token once."""

    list_display = ("name", "agent", "rights", "workspaces", "created_at", "last_used_at", "revoked_at")
    list_filter = ("agent",)
    search_fields = ("name", "agent")
    ordering = ("revoked_at", "-created_at")
    exclude = ("token_hash",)
    actions = ("revoke",)

    @admin.action(description="Revoke", permissions=["view"])
    def revoke(self, request: HttpRequest, rows: QuerySet[AgentToken]) -> None:
        revoked = [row.name for row in rows if row.revoked_at is None and tokens.token_revoke(row.name)]
        messages.success(request, f"Revoked: {len(revoked)} tokens.")
