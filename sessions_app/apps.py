from collections.abc import Iterator, Sequence

from django.apps import AppConfig

# markdown.EVENT_CHARACTERS: a body shows this much of an event before it cuts, and is full later still.
# Importing it, or what reads events, would cost every command 60 ms.
LEAST_CUT_BYTES = 200_000


class SessionsAppConfig(AppConfig):
    name = "sessions_app"
    verbose_name = "Sessions"

    def ready(self) -> None:
        from records.capacity.gc import trasher_set
        from records.fulltext import OverflowText, Warn, overflow_provider_set
        from records.models import Record

        def read(record: Record, warn: Warn, seq: int | None = None) -> Iterator[OverflowText]:
            from .fulltext import overflow_read

            return overflow_read(record, warn, seq)

        overflow_provider_set(read, least_bytes=LEAST_CUT_BYTES)

        def trash(record_ids: Sequence[str], actor: str) -> str:
            from .forget import records_trash

            return records_trash(record_ids, actor)

        trasher_set(trash)
