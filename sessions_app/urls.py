from urllib.parse import quote, unquote

from django.urls import path, register_converter

from .views import deciding, forgetting, originals, remembering, secrets, sessions, store, switching


class ForeignIdConverter:
    """Agents choose their ids, and any character may be in one. It is quoted once here and once more by
    `reverse`: a server decodes a path once before it looks at it."""

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        return unquote(value)

    def to_url(self, value: str) -> str:
        # Browsers resolve a segment of dots even when they are quoted, but not when quoted twice.
        return quote(value, safe="") if value.strip(".") else value.replace(".", "%2E")


register_converter(ForeignIdConverter, "foreign")

app_name = "sessions"
urlpatterns = [
    path("sessions/", sessions.session_list, name="list"),
    path("sessions/<foreign:session_id>/", sessions.session_detail, name="detail"),
    path("sessions/<foreign:session_id>/level", switching.session_level, name="level"),
    path("sessions/<foreign:session_id>/pause", switching.session_pause, name="pause"),
    path("sessions/<foreign:session_id>/forget", forgetting.session_forget, name="forget"),
    path("sessions/<foreign:session_id>/events/<int:seq>/", sessions.session_event, name="event"),
    path(
        "sessions/<foreign:session_id>/events/<int:seq>/original",
        originals.event_original,
        name="event_original",
    ),
    path(
        "sessions/<foreign:session_id>/compactions/<foreign:compaction_id>/",
        sessions.session_compaction,
        name="compaction",
    ),
    path("records/act", deciding.records_act, name="records_act"),
    path("records/undo", deciding.records_undo, name="records_undo"),
    path("records/new", remembering.memory_new, name="memory_new"),
    path("records/forget", forgetting.records_forget, name="forget_records"),
    path("records/<str:record_id>/original", originals.record_original, name="original"),
    path("workspaces/", store.workspaces, name="workspaces"),
    path("workspaces/levels", switching.workspaces_levels, name="workspaces_levels"),
    path("workspaces/<foreign:key>/levels", switching.workspace_levels, name="workspace_levels"),
    path("workspaces/<foreign:key>/pause", switching.workspace_pause, name="workspace_pause"),
    path("pause", switching.pause_everything, name="pause_everything"),
    path("workspaces/archive", store.archive_now, name="archive_now"),
    path("samples/load", store.samples_load, name="samples_load"),
    path("samples/remove", store.samples_remove, name="samples_remove"),
    path("jobs/<int:pk>/", store.job_detail, name="job"),
    path("jobs/<int:pk>/cancel", store.job_cancel, name="job_cancel"),
    path("trash/", forgetting.trash, name="trash"),
    path("trash/<str:bundle_id>/restore", forgetting.trash_restore, name="trash_restore"),
    path("trash/<str:bundle_id>/purge", forgetting.trash_purge, name="trash_purge"),
    path("secrets/", secrets.secret_list, name="secrets"),
    path("secrets/<str:record_id>", secrets.secret_decide, name="secret_decide"),
    path("health/", store.health, name="health"),
]
