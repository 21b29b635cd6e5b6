"""Feeds logs to DSH's reader, for tests."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from sessions_app.logs.dsh import FORMAT
from sessions_app.logs.events import CompactionFact, Effect, Head, NewEvent, RowWarning, SessionFact, Shadowed
from sessions_app.logs.rows import Row, RowSplitter

from .dsh_builder import DshLog

Kind = TypeVar("Kind")


@dataclass
class Run:
    effects: list[Effect]
    rows: list[Row]
    nodes: list[int | list[int]] = field(default_factory=list)

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    @property
    def events(self) -> list[NewEvent]:
        return self.of(NewEvent)

    @property
    def shadowed(self) -> dict[int, int]:
        return {seq: effect.by for effect in self.of(Shadowed) for seq in effect.seqs}

    @property
    def facts(self) -> dict[str, CompactionFact]:
        """What was said last of each."""
        return {fact.compaction_id: fact for fact in self.of(CompactionFact)}

    @property
    def session(self) -> dict[str, object]:
        return {key: value for fact in self.of(SessionFact) for key, value in fact.values.items()}

    @property
    def warnings(self) -> list[str]:
        return [warning.code for warning in self.of(RowWarning)]


def rows_of(data: bytes) -> list[Row]:
    return list(RowSplitter().feed(data))


def run(log: DshLog | bytes | Iterable[Row]) -> Run:
    data = log.data() if isinstance(log, DshLog) else log
    rows = rows_of(data) if isinstance(data, bytes) else list(data)
    reader = FORMAT.reader(FORMAT.head(rows, "") or Head("dsh"), None, [])
    effects = [effect for row in rows for effect in reader.feed(row)]
    return Run(effects, rows, reader.state()["nodes"])
