"""The tables of sessions_app."""

from .agents import Injection, OpenedSession, Receipt
from .sessions import (
    AgentSession,
    ArchivedCompaction,
    Compaction,
    Event,
    Generation,
    ImportWarning,
    L1Eviction,
    SessionFile,
    SessionSettings,
    Source,
    Surface,
)
from .work import Job, Lease

__all__ = [
    "AgentSession",
    "ArchivedCompaction",
    "Compaction",
    "Event",
    "Generation",
    "ImportWarning",
    "Injection",
    "Job",
    "L1Eviction",
    "Lease",
    "OpenedSession",
    "Receipt",
    "SessionFile",
    "SessionSettings",
    "Source",
    "Surface",
]
