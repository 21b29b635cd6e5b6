"""What the changing tools hand on and say. What is changed, `operations.changing` decides: here a stand-in."""

import sys
from types import ModuleType
from typing import Any

import pytest

from memex_site.mcp.calls import ToolRefused
from sessions_app.access import Access
from sessions_app.levels import LevelsOff

from .conftest import ask_with, handle_of, token_of

pytestmark = pytest.mark.django_db(transaction=True)


class Changing(ModuleType):
    """Answers with what it is told to, and notes what it was asked."""

    def __init__(self) -> None:
        super().__init__("sessions_app.operations.changing")
        self.asked: list[dict[str, Any]] = []
        self.answer: Any = None

    def _said(self, access: Access, **fields: Any) -> Any:
        assert access.session is not None
        self.asked.append(fields)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def write(self, access: Access, **fields: Any) -> Any:
        return self._said(access, **fields)

    def restore(self, access: Access, record_id: str) -> Any:
        return self._said(access, record_id=record_id)

    def compress(self, access: Access, **fields: Any) -> Any:
        return self._said(access, **fields)


@pytest.fixture
def changing(monkeypatch) -> Changing:
    module = Changing()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.fixture
def ask(archived):
    ask = ask_with(token_of(rights=["read", "write", "capacity"]).token)
    return lambda name, **given: ask(name, session=handle_of(), **given)


def test_writing_hands_on_what_was_given(ask, changing) -> None:
    changing.answer = {"id": "cap_1234567890", "status": "active"}
    given = {
        "kind": "decision",
        "text": "Use ruff.",
        "tags": {"topic": ["lint"]},
        "confidence": 0.9,
        "scope": "session",
    }
    assert ask("memory_write", **given) == "Written as cap_1234567890 (active)."
    assert changing.asked == [given]


def test_writing_says_what_came_of_it(ask, changing) -> None:
    changing.answer = {"id": "cap_1", "status": "active", "dedupe": True}
    assert "Already there as cap_1" in ask("memory_write", kind="note", text="x")
    changing.answer = {"id": "cap_1", "status": "conflict", "conflictsWith": ["cap_2"]}
    assert "contradicts cap_2" in ask("memory_write", kind="note", text="x")
    changing.answer = {"id": "cap_1", "status": "suggested"}
    assert "once a person has confirmed it" in ask("memory_write", kind="note", text="x")


@pytest.mark.parametrize("error", [LevelsOff(), ValueError("title must be one line of text.")])
def test_what_is_not_written_is_said(ask, changing, error) -> None:
    changing.answer = error
    with pytest.raises(ToolRefused, match=r"Nothing was written[.:] (That level is off|title must be)"):
        ask("memory_write", kind="note", text="x")


def test_only_kinds_that_an_agent_writes(ask, changing) -> None:
    with pytest.raises(ToolRefused, match="kind must be decision or"):
        ask("memory_write", kind="checkpoint", text="x")


def test_restoring(ask, changing) -> None:
    changing.answer = {"record": {"id": "mem_1234567890", "title": "A\ntitle", "tokens": 1_200}}
    assert (
        ask("memory_restore", record_id="mem_1234567890") == "mem_1234567890 is hot: “A title”, 1.2k tokens."
    )


def test_compressing(ask, changing) -> None:
    changing.answer = {
        "reports": [
            {"level": "l3", "targetTokens": 600, "beforeHot": 1_000, "coldMoved": 3, "freedTokens": 450}
        ],
        "compression": {},
    }
    answer = ask("memory_compress", level="l3", target_ratio=0.5)
    assert "L3: 1.0k tokens were hot; 3 records went cold, 450 tokens (target 600)." in answer
    assert changing.asked == [{"level": "l3", "target_ratio": 0.5}]
    changing.answer = {"reports": [], "compression": {}}
    assert "There was nothing to compress." in ask("memory_compress")
