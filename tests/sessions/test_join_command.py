import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from records.ids import workspace_key
from sessions_app.archiving import archive_run
from sessions_app.workspaces import workspace_joined
from tests.sessions.stories import write_log

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def stores(agent_home) -> None:
    write_log(agent_home, 1, cwd="/w/a")
    write_log(agent_home, 2, cwd="/w/b", word="lantern")
    archive_run(level="l3")


def join(*arguments: str) -> str:
    out = StringIO()
    call_command("memory", "join", *arguments, stdout=out)
    return out.getvalue()


def test_a_preview_says_who_will_see_what_and_changes_nothing():
    said = join("/w/a", "/w/b")
    assert "/w/a: 2 shared records; sessions: 1 of claude-code" in said
    assert "all 4 shared records" in said and "--yes" in said
    assert workspace_joined(workspace_key("/w/a", "")) == {workspace_key("/w/a", "")}


def test_joined_and_taken_apart_again():
    join("/w/a", "/w/b", "--yes")
    keys = {workspace_key("/w/a", ""), workspace_key("/w/b", "")}
    assert workspace_joined(workspace_key("/w/b", "")) == keys
    assert join() == "/w/a  +  /w/b\n" or join() == "/w/b  +  /w/a\n"
    assert len(json.loads(join("--json"))["joins"]) == 1
    join("/w/a", "--apart")
    assert workspace_joined(workspace_key("/w/b", "")) == {workspace_key("/w/b", "")}
    with pytest.raises(CommandError, match="isn't joined"):
        join("/w/a", "--apart")


def test_one_folder_alone_joins_nothing():
    with pytest.raises(CommandError, match="two folders"):
        join("/w/a", "/w/a/")
