"""The bundled sample sessions: they read like real ones, and go without a trace."""

import re
from pathlib import Path

import pytest

from records.models import Record
from records.tombstones import tombstones
from sessions_app import archiving, discovery
from sessions_app.forget import forget_plan, forget_run
from sessions_app.jobs import job_next, job_run
from sessions_app.models import AgentSession, Compaction, Job, Receipt, SessionSettings, Source
from sessions_app.originals import record_rows
from sessions_app.queries import rows_read
from sessions_app.samples import SAMPLE_LOGS, samples_load, samples_present, samples_remove

from .builders import LAST, dump, reindex, write
from .logs import codex_lines as codex

pytestmark = pytest.mark.django_db(transaction=True)
FILES = sorted(path for path in SAMPLE_LOGS.rglob("*") if path.is_file())
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture
def loaded(memex_home: Path) -> archiving.ArchiveResult:
    return archiving.archive_run([SAMPLE_LOGS], level="l3", is_sample=True)


def files_below(home: Path) -> list[str]:
    """All but what every store has, and the ledger, which tells by id what was done."""
    passing = {"ledger.jsonl", "archive.lock", "bodies.lock", "VERSION", "forgotten.jsonl", "index.db"}
    found = [path for path in home.rglob("*") if path.is_file() or path.parent.parent == home]
    return sorted(str(path.relative_to(home)) for path in found if path.name not in passing)


def test_they_are_small_and_no_more_than_logs():
    assert sum(path.stat().st_size for path in FILES) <= 250 * 1024
    assert {path.suffix for path in FILES} == {".jsonl"}


@pytest.mark.parametrize(
    ("agent", "count"), [("claude-code", 3), ("codex", 1), ("dsh", 1)]
)  # one of them a sub-agent's
def test_they_lie_as_the_agents_lay_them(settings, agent, count):
    settings.AGENT_HOMES = {**settings.AGENT_HOMES, agent: SAMPLE_LOGS / agent}
    found = discovery.home_files(agent)
    assert len(found) == count
    assert set(found) == {path for path in FILES if agent in path.parts}


def test_all_of_it_is_archived(loaded):
    assert (loaded.warnings, loaded.skipped, loaded.pending, loaded.empty) == (0, 0, 0, 0)
    assert loaded.compactions == loaded.archived >= 6
    assert loaded.micro >= 2
    for agent in archiving.AGENTS:
        assert Compaction.objects.filter(session__agent=agent, kind="compaction").count() >= 2
    assert all(AgentSession.objects.values_list("is_sample", flat=True))
    assert all(AgentSession.objects.exclude(relation="subagent").values_list("title", flat=True))


def test_every_byte_is_in_the_store(loaded):
    for source in Source.objects.all():
        session = AgentSession.objects.get(pk=source.session_id)
        assert b"".join(rows_read(session, 0, LAST)) == Path(source.path).read_bytes()


def test_they_show_what_summaries_lose(loaded):
    found = Compaction.objects.filter(kind="compaction")
    for name in ("paths", "commands", "errors", "numbers", "decisions"):
        assert any(each.lost[name] for each in found), name
    for each in found:
        assert sum(each.lost["lost"].values()) > 0


def test_they_show_open_threads_a_sealed_summary_and_both_kinds_of_eviction(loaded):
    assert Record.objects.filter(kind="open-thread").exists()
    assert Compaction.objects.filter(opaque=True).exists()
    assert set(Compaction.objects.values_list("kind", flat=True)) == {"compaction", "microcompact", "prune"}
    (child,) = AgentSession.objects.filter(relation="subagent")
    assert AgentSession.objects.filter(pk=child.parent_id).exists()


def test_two_agents_share_a_workspace(loaded):
    agents = AgentSession.objects.values_list("workspace_key", "agent")
    shared = {key for key, agent in agents if agent == "claude-code"}
    assert {key for key, agent in agents if agent in ("codex", "dsh")} == shared


def test_one_talk_is_in_chinese_and_one_in_english(loaded):
    titles = [record.title for record in Record.objects.filter(provenance__source="compaction-archive")]
    assert [title for title in titles if CHINESE.search(title)]
    assert [title for title in titles if not CHINESE.search(title)]
    for session in AgentSession.objects.filter(cwd="/samples/tea-orders"):
        records = Record.objects.filter(
            provenance__sessionId=session.pk, provenance__source="compaction-archive"
        )
        said = [b"".join(record_rows(record)).decode() for record in records]
        assert said and all(CHINESE.search(text) for text in said)


def test_they_are_rebuilt_from_files(loaded):
    before = dump()
    reindex()
    assert dump() == before
    assert samples_present()


def test_loading_is_a_job_that_the_worker_does(memex_home):
    assert not samples_present()
    queued = samples_load()
    assert samples_load() == queued
    job = job_next()
    job_run(job, lambda: False)
    assert job.state == Job.State.DONE
    assert job.result["archived"] == Record.objects.filter(provenance__source="compaction-archive").count()
    assert samples_present()


def test_removing_leaves_nothing_and_they_load_again(memex_home, loaded):
    before = dump()
    sessions = AgentSession.objects.count()
    samples_load()
    assert samples_remove() == sessions
    assert not samples_present()
    assert {table: rows for table, rows in dump().items() if rows} == {}
    assert not SessionSettings.objects.exists()
    assert not Receipt.objects.exists()
    assert not Job.objects.exists()
    assert not tombstones()
    assert files_below(memex_home) == []

    again = archiving.archive_run([SAMPLE_LOGS], level="l3", is_sample=True)
    assert again.archived == loaded.archived
    assert dump() == before


def test_removing_takes_along_what_was_forgotten_of_them(memex_home, loaded):
    record = Record.objects.filter(provenance__source="compaction-archive").first()
    forget_run(forget_plan(record_ids=[record.id]), actor="owner")
    session_id = AgentSession.objects.get(agent="codex").pk
    forget_run(forget_plan(session_ids=[session_id]), actor="owner")
    samples_remove()
    assert not tombstones()
    assert files_below(memex_home) == []
    assert archiving.archive_run([SAMPLE_LOGS], level="l3", is_sample=True).archived == loaded.archived


def test_removing_before_they_were_read_drops_the_job(memex_home):
    samples_load()
    archiving.archive_run([SAMPLE_LOGS], level="l3", is_sample=True, stopped=lambda: True)
    assert samples_present()
    assert samples_remove() == 0
    assert not samples_present()
    assert job_next() is None
    assert not SessionSettings.objects.exists()
    assert files_below(memex_home) == []


def test_what_is_not_a_sample_stays(memex_home, loaded, tmp_path):
    path = tmp_path / "rollout-own.jsonl"
    write(path, [codex.meta(), codex.message("assistant", "done"), codex.compacted(text="It is done.")])
    archiving.archive_run([path], level="l3")
    samples_remove()
    assert Record.objects.get().provenance["sessionId"] == codex.CHILD
    assert AgentSession.objects.get().pk == codex.CHILD
    assert not archiving.archive_run([path], level="l3").archived
