"""The tools that change something, on a real store."""

import pytest

from memex_site.mcp.calls import ToolRefused
from records.capacity.cold import record_cool
from records.models import CompressionRun, Record
from sessions_app.levels import level_enable
from tests.sessions.stories import session_id

from .conftest import ask_with, handle_of, token_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ask(archived):
    ask = ask_with(token_of(rights=["read", "write", "capacity"]).token)
    return lambda name, **given: ask(name, session=handle_of(), **given)


def refused(ask, name, **given) -> str:
    with pytest.raises(ToolRefused) as caught:
        ask(name, **given)
    return str(caught.value)


def test_what_is_written_is_found_with_all_its_fields(ask) -> None:
    said = ask(
        "memory_write", kind="decision", text="Use ruff for linting.", title="Linter", use_when="When linting.",
        tags={"topic": ["lint"]}, entities=["ruff"], slot="linter", confidence=0.9, scope="workspace",
    )  # fmt: skip
    record = Record.objects.get(title="Linter")
    assert said == f"Written as {record.id} (active)."
    assert (record.kind, record.trust, record.slot, record.confidence) == ("decision", "agent", "linter", 0.9)
    assert record.tags["topic"] == ["lint"] and record.entities == ["ruff"]
    assert record.id in ask("memory_search", query="which linter do we use: ruff?")


def test_a_duplicate_and_a_contradiction_are_told(ask) -> None:
    ask("memory_write", kind="decision", text="The linter of this project is ruff.", slot="linter")
    first = Record.objects.get(slot="linter").id
    assert f"Already there as {first}" in ask(
        "memory_write", kind="decision", text="The linter of this project is ruff.", slot="linter"
    )
    said = ask(
        "memory_write", kind="decision", text="Everything is checked with flake8 from now on.", slot="linter"
    )
    assert f"contradicts {first}" in said and "user" in said


def test_what_waits_for_a_person_says_so(ask, settings) -> None:
    settings.MEMEX_REQUIRE_CONFIRMATION = True
    assert "once a person has confirmed it" in ask(
        "memory_write", kind="note", text="The tide turns at nine."
    )


def test_a_level_that_is_off_is_named(ask) -> None:
    assert "Nothing was written" in refused(ask, "memory_write", kind="note", text="Mine.", scope="session")
    assert "Nothing was compressed" in refused(ask, "memory_compress", level="l2")
    level_enable(session_id(), "l2")
    assert "Written as" in ask("memory_write", kind="note", text="Mine.", scope="session")


def test_compressing_and_restoring(ask, settings) -> None:
    settings.MEMEX_CAPACITY_TOKENS = sum(Record.objects.values_list("tokens", flat=True))
    said = ask("memory_compress", target_ratio=0.6)
    assert "L3: " in said and "1 records went cold" in said and "memory_open reads them" in said
    assert CompressionRun.objects.get().actor == "token:claude-code"
    cold = Record.objects.get(cold=1)
    assert f"{cold.id} is hot" in ask("memory_restore", id=cold.id)
    assert not Record.objects.get(pk=cold.id).cold


def test_what_cannot_be_done_is_said_in_words(ask) -> None:
    hot = Record.objects.first().id
    assert "is hot already" in ask("memory_restore", id=hot)
    assert "mem_0000000000" in refused(ask, "memory_restore", id="mem_0000000000")
    assert "language model" in refused(ask, "memory_compress", strategy="digest")


def test_rights_are_asked_for(archived) -> None:
    plain = ask_with(token_of(name="reader", rights=["read"]).token)
    cold = Record.objects.first().id
    record_cool([cold], actor="owner")
    for name, given in (
        ("memory_write", {"kind": "note", "text": "x"}), ("memory_restore", {"id": cold}), ("memory_compress", {}),
    ):  # fmt: skip
        assert "right" in refused(plain, name, session=handle_of(), **given)
    assert Record.objects.get(pk=cold).cold
