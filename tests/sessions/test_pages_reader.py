import json
import re

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from records.models import Record
from records.trash import bundle_list
from sessions_app.archiving import archive_run
from sessions_app.contexts import compaction_row
from sessions_app.models import AgentSession, Compaction, Event, ImportWarning
from sessions_app.page_queries import EVENTS_A_WINDOW

from .logs.claude_lines import assistant, user
from .pages import HOSTILE, HTMX, PAGE, SESSION
from .stories import as_bytes, session_id, write_log

pytestmark = pytest.mark.django_db(transaction=True)


def seqs(text: str) -> list[int]:
    return [int(piece.split('"')[0]) for piece in text.split(' id="e')[1:] if piece.split('"')[0].isdigit()]


def test_the_reader_shows_events_with_their_state(owner, archived):
    text = owner.get(PAGE).text
    for piece in (
        "I will read src/harbour_0.py.",
        "row of output;",
        "compacted away",
        "in context",
        "tool call · Bash",
    ):
        assert piece in text, piece
    compaction = Compaction.objects.first()
    anchor = compaction_row(compaction).anchor
    assert f'class="compaction" id="{anchor}"' in text
    assert f"#{anchor}" in text
    assert f'href="/records/{compaction.record_id}/"' in text
    assert text.index(f'id="{anchor}"') < text.index(f'id="e{compaction.at_seq + 1}"')


@pytest.mark.parametrize(
    ("show", "surface"), [("current", ["current"]), ("dropped", ["shadowed"]), ("all", None)]
)
def test_what_is_shown_can_be_chosen(owner, archived, show, surface):
    expected = archived.events.order_by("seq")
    if surface:
        expected = expected.filter(surface__in=surface)
    assert seqs(owner.get(f"{PAGE}?show={show}").text) == list(expected.values_list("seq", flat=True))
    assert owner.get(f"{PAGE}?show=nonsense").status_code == 404


def test_a_whole_session_is_never_rendered_at_once(owner, agent_home):
    write_log(agent_home, 1, compactions=3, turns=20)
    archive_run(level="l3")
    every = list(Event.objects.exclude(surface="log-only").order_by("seq").values_list("seq", flat=True))
    assert len(every) > 2 * EVENTS_A_WINDOW
    seen, address = [], PAGE
    while True:
        text = owner.get(address, headers=HTMX).text
        assert len(seqs(text)) <= EVENTS_A_WINDOW
        seen += seqs(text)
        if 'id="later"' not in text:
            break
        address = PAGE + text.split('id="later"')[1].split('hx-get="')[1].split('"')[0].replace("&amp;", "&")
    assert seen == every
    text = owner.get(f"{PAGE}?at={every[-1]}").text
    back = seqs(text)
    while 'id="earlier"' in text:
        address = PAGE + text.split('id="earlier"')[1].split('hx-get="')[1].split('"')[0].replace(
            "&amp;", "&"
        )
        text = owner.get(address, headers=HTMX).text
        back = seqs(text) + back
    assert back == every


def test_every_compaction_stands_in_one_window(owner, agent_home):
    write_log(agent_home, 1, compactions=3, turns=20)
    archive_run(level="l3")
    for address in (f"{PAGE}?show=current", PAGE):
        found = []
        while address:
            text = owner.get(address, headers=HTMX).text
            found += [piece.split('"')[0] for piece in text.split('class="compaction" id="')[1:]]
            later = text.split('id="later"')
            address = (
                PAGE + later[1].split('hx-get="')[1].split('"')[0].replace("&amp;", "&")
                if len(later) > 1
                else ""
            )
        compactions = Compaction.objects.order_by("at_seq")
        assert found == [compaction_row(compaction).anchor for compaction in compactions]


def test_the_queries_of_a_window_do_not_grow_with_its_events(owner, agent_home):
    counts = []
    for turns in (2, 8):
        write_log(agent_home, turns, compactions=1, turns=turns)
        archive_run(level="l3")
        with CaptureQueriesContext(connection) as captured:
            owner.get(f"/sessions/{session_id(turns)}/")
        counts.append(len(captured))
    assert counts[0] == counts[1]


def test_hostile_text_is_shown_as_text(owner, agent_home):
    path = agent_home / "projects" / "-w" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    lines = [
        user("11111111-0000-4000-8000-000000000001", HOSTILE, sessionId=SESSION, cwd=f"/home/dev/{HOSTILE}"),
        assistant(
            "11111111-0000-4000-8000-000000000002",
            {"type": "tool_use", "id": "t1", "name": HOSTILE, "input": {HOSTILE: HOSTILE}},
            sessionId=SESSION,
        ),
    ]
    path.write_bytes(as_bytes(lines))
    archive_run(level="l3")
    ImportWarning.objects.create(path=HOSTILE, row=1, code="x", message=HOSTILE, created_at=1)
    for address in (PAGE, f"{PAGE}events/0/", f"{PAGE}forget", "/sessions/", "/workspaces/", "/health/"):
        text = owner.get(address).text
        for piece in ("<script>alert", "<svg onload", "<img src=x"):
            assert piece not in text, address
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in owner.get(PAGE).text


def test_what_hides_or_turns_is_shown(owner, agent_home):
    path = agent_home / "projects" / "-w" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    hidden = "x\u202e\u2067\x1b[0m"
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": hidden}}
    where = {"sessionId": SESSION, "cwd": f"/home/dev/{hidden}"}
    lines = [
        user("11111111-0000-4000-8000-000000000001", f"Look at {hidden}", **where),
        assistant("11111111-0000-4000-8000-000000000002", use, **where),
    ]
    path.write_bytes(as_bytes(lines))
    archive_run(level="l3")
    ImportWarning.objects.create(path=hidden, row=1, code="x", message=hidden, created_at=1)
    owner.post(f"{PAGE}forget")
    owner.post(f"/trash/{bundle_list()[0].id}/restore")  # the message is shown on the next page
    for address in (
        "/trash/",
        PAGE,
        f"{PAGE}events/0/",
        f"{PAGE}forget",
        "/sessions/",
        "/workspaces/",
        "/health/",
    ):
        assert not {"\u202e", "\u2067", "\x1b"} & set(owner.get(address).text), address
    text = owner.get(PAGE).text
    assert "command: x‹U+202E›‹U+2067›␛[0m" in text
    assert "Look at x‹U+202E›" in text


def test_long_text_is_folded_and_opened(owner, agent_home):
    write_log(agent_home, 1, compactions=1, turns=1, size=2_000)
    archive_run(level="l3")
    seq = Event.objects.filter(role="tool").order_by("seq").first().seq
    folded = owner.get(PAGE).text
    assert "Show all" in folded
    assert len(folded) < 40_000
    part = owner.get(f"{PAGE}events/{seq}/", headers=HTMX).text
    assert part.count("row of output;") == 2_000
    assert "<html" not in part
    assert owner.get(f"{PAGE}events/{seq}/").text.count("row of output;") == 2_000


def test_the_original_of_an_event_and_of_a_record(owner, archived, agent_home):
    log = next((agent_home / "projects").rglob("*.jsonl")).read_bytes()
    lines = log.splitlines(keepends=True)
    answer = owner.get(f"{PAGE}events/2/original")
    assert b"".join(answer.streaming_content).rstrip(b"\n") == lines[2].rstrip(b"\n")
    record = Record.objects.order_by("created_at").first()
    answer = owner.get(f"/records/{record.pk}/original")
    kept = b"".join(answer.streaming_content)
    first, last = record.provenance["rows"][0]
    assert kept.startswith(b"".join(lines[first : last + 1]))
    assert answer["Content-Type"].startswith("text/plain")
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"].startswith("sandbox")


def test_a_mirror_that_is_gone_is_said(owner, archived, memex_home):
    for path in (memex_home / "sessions").rglob("*.zst*"):
        path.unlink()
    text = owner.get(PAGE).text
    assert text.count("The original can&#x27;t be read") == len(seqs(text)) > 0
    assert owner.get(f"{PAGE}events/2/original").status_code == 404
    assert owner.get(f"/records/{Record.objects.first().pk}/original").status_code == 404


def test_the_summary_beside_what_it_lost(owner, archived):
    compaction = Compaction.objects.first()
    address = f"{PAGE}compactions/{compaction.compaction_id}/"
    for headers in ({}, HTMX):
        text = owner.get(address, headers=headers).text
        assert "Summary 0: worked on the harbour." in text
        assert "src/harbour_0.py" in text
        assert ("<html" in text) is not bool(headers)
    assert owner.get(f"{PAGE}compactions/nothing/").status_code == 404


@pytest.mark.parametrize(
    "address",
    [
        "/sessions/nothing/",
        "/sessions/nothing/events/1/",
        "/sessions/nothing/forget",
        f"{PAGE}events/999999/",
        f"{PAGE}events/999999/original",
        f"{PAGE}?at=x",
        f"{PAGE}?before=-1",
        f"{PAGE}?at={'9' * 40}",
        "/records/mem_0000000000/original",
        "/records/forget",
        "/records/forget?id=mem_0000000000",
        "/trash/nothing/purge",
        "/trash/20260101t000000-00000000/purge",
    ],
)
def test_what_does_not_exist_is_not_found(owner, archived, address):
    assert owner.get(address).status_code == 404


def test_a_place_after_the_end_shows_nothing(owner, archived):
    assert "No such event" in owner.get(f"{PAGE}?at=999999").text


def test_tool_arguments_are_shown_with_their_line_breaks(owner, agent_home):
    path = agent_home / "projects" / "-w" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "one\ntwo", "limit": 3}}
    path.write_bytes(as_bytes([assistant("11111111-0000-4000-8000-000000000002", use, sessionId=SESSION)]))
    archive_run(level="l3")
    assert "command: one\ntwo\nlimit: 3" in owner.get(PAGE).text
    assert json.dumps(use["input"])[1:-1] not in owner.get(PAGE).text


def test_a_part_has_only_the_button_at_its_own_end(owner, agent_home):
    write_log(agent_home, 1, compactions=3, turns=20)
    archive_run(level="l3")
    for address, own, other in (("?at=120", "later", "earlier"), ("?before=120", "earlier", "later")):
        part = owner.get(PAGE + address, headers=HTMX).text
        assert f'id="{own}"' in part
        assert f'id="{other}"' not in part
        whole = owner.get(PAGE + address).text
        assert f'id="{own}"' in whole
        assert f'id="{other}"' in whole


def test_a_compaction_keeps_its_address_when_the_database_is_rebuilt(owner, archived):
    text = owner.get(PAGE).text
    addresses = set(re.findall(r'href="(/sessions/[^"]+/compactions/[^"]+)"', text))
    anchors = set(re.findall(r'class="compaction" id="(\w+)"', text))
    assert len(addresses) == len(anchors) == 2
    Compaction.objects.update(id=F("id") + 1_000)
    again = owner.get(PAGE).text
    assert anchors == set(re.findall(r'class="compaction" id="(\w+)"', again))
    assert {owner.get(address).status_code for address in addresses} == {200}


def test_any_compaction_id_fits_into_an_address(owner, archived):
    compaction = Compaction.objects.first()
    for name in ("sum:1/2", "..", "a b?c#d%2F", '"><script>'):
        Compaction.objects.filter(pk=compaction.pk).update(compaction_id=name)
        address = reverse("sessions:compaction", args=[SESSION, name])
        assert owner.get(address).status_code == 200, name


def test_the_comparison_leads_to_the_values_it_does_not_list(owner, archived):
    compaction = Compaction.objects.first()
    lost = compaction.lost | {"lost": compaction.lost["lost"] | {"paths": 52}}
    Compaction.objects.filter(pk=compaction.pk).update(lost=lost)
    text = owner.get(f"{PAGE}compactions/{compaction.compaction_id}/").text
    assert f'href="/records/{compaction.record_id}/#lost-by-the-summary">More of them' in text
    assert 'id="lost-by-the-summary"' in owner.get(f"/records/{compaction.record_id}/").text


def test_the_list_of_records_names_the_session(owner, archived):
    AgentSession.objects.update(title="The harbour's new wall")
    text = owner.get("/").text
    assert text.count("in “<bdi>The harbour&#x27;s new wall</bdi>") == 2
    AgentSession.objects.update(title="Please look at")
    assert 'class="of-session"' not in owner.get("/").text
