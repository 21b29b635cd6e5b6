"""Who may see what, by session, by folder, by handle."""

from pathlib import Path

import pytest

from records.ids import workspace_key
from records.models import Scope as Pool
from sessions_app.access import Access, access_by_handle, access_of, folder_access
from sessions_app.levels import level_enable
from sessions_app.opening import SessionTaken, UnknownSession, session_handle, session_known, session_note
from sessions_app.principals import OWNER_PRINCIPAL, Principal
from sessions_app.workspaces import workspace_unjoin, workspaces_join

pytestmark = pytest.mark.django_db

MINE = Principal("mine", 1, "", frozenset({"read", "write"}))
OTHER = Principal("other", 2, "", frozenset({"read", "write"}))
CLAUDE = Principal("claude-code", 3, "claude-code", frozenset({"read", "write"}))


@pytest.fixture(autouse=True)
def store(memex_home: Path) -> None:
    """A store of its own."""


def pools(access: Access) -> set[str]:
    return set(access.scope.pools)


def test_a_session_is_its_tokens_alone() -> None:
    session_note(MINE, "s1", "botty", cwd="/w/a")
    assert access_of(MINE, session_id="s1").session is not None
    with pytest.raises(UnknownSession):
        access_of(OTHER, session_id="s1")
    with pytest.raises(SessionTaken):
        session_note(OTHER, "s1", "botty", cwd="/w/a")
    assert access_of(OWNER_PRINCIPAL, session_id="s1").session is not None


def test_opening_again_is_the_same() -> None:
    first = session_note(MINE, "s1", "botty", cwd="/w/a")
    assert session_note(MINE, "s1", "botty", cwd="/w/a").handle == first.handle


def test_a_session_that_a_hook_brought_is_its_agents() -> None:
    session_note(CLAUDE, "s1", "claude-code", cwd="/w/a", by_hook=True)
    assert access_of(CLAUDE, session_id="s1").session is not None
    second = Principal("second", 4, "claude-code", frozenset({"read"}))
    assert access_of(second, session_id="s1").session is not None
    with pytest.raises(UnknownSession):
        access_of(MINE, session_id="s1")


def test_a_token_of_one_workspace_knows_no_session_of_another() -> None:
    session_note(CLAUDE, "s1", "claude-code", cwd="/w/a", by_hook=True)
    limited = Principal("l", 5, "claude-code", frozenset({"read"}), frozenset({workspace_key("/w/b", "")}))
    with pytest.raises(UnknownSession):
        access_of(limited, session_id="s1")
    with pytest.raises(UnknownSession):
        session_note(limited, "s2", "claude-code", cwd="/w/a")


def test_levels_say_which_pools_are_seen() -> None:
    session_note(MINE, "s1", "botty", cwd="/w/a")
    assert pools(access_of(MINE, session_id="s1")) == set()
    level_enable("s1", "l2")
    assert pools(access_of(MINE, session_id="s1")) == {Pool.SESSION}
    level_enable("s1", "l3")
    assert pools(access_of(MINE, session_id="s1")) == {Pool.SESSION, Pool.WORKSPACE}


def test_a_folder_alone_shows_shared_records_to_whom_lists_it() -> None:
    key = workspace_key("/w/a", "")
    listed = Principal("l", 5, "", frozenset({"read"}), frozenset({key}))
    with pytest.raises(UnknownSession):
        access_of(MINE, cwd="/w/a")
    assert pools(access_of(listed, cwd="/w/a")) == set()  # nothing is on there
    from sessions_app.workspaces import workspace_default_set

    workspace_default_set(key, "/w/a", l2=True, l3=True)
    access = access_of(listed, cwd="/w/a")
    assert pools(access) == {Pool.WORKSPACE}
    assert access.keys == {key}
    assert pools(folder_access(MINE, "/w/a", by_process=True)) == {Pool.WORKSPACE}


def test_neither_session_nor_folder_is_the_owners_view_alone() -> None:
    assert access_of(OWNER_PRINCIPAL).is_everything
    with pytest.raises(UnknownSession):
        access_of(MINE)


def test_a_handle_stands_for_its_session_and_is_nothing_without_the_token() -> None:
    session_note(MINE, "s1", "botty", cwd="/w/a")
    known = session_known("s1")
    assert known is not None
    handle = session_handle(known)
    access = access_by_handle(MINE, handle)
    assert access.session is not None and access.session.session_id == "s1"
    with pytest.raises(UnknownSession):
        access_by_handle(OTHER, handle)
    with pytest.raises(UnknownSession):
        access_by_handle(MINE, "mxs_nothing")


def test_joined_workspaces_count_as_one_as_far_as_the_token_goes() -> None:
    a, b, c = (workspace_key(folder, "") for folder in ("/w/a", "/w/b", "/w/c"))
    session_note(MINE, "s1", "botty", cwd="/w/a")
    level_enable("s1", "l3")
    workspaces_join([a, b])
    workspaces_join([b, c])
    assert access_of(MINE, session_id="s1").keys == {a, b, c}
    limited = Principal("mine", 1, "", frozenset({"read"}), frozenset({a, c}))
    assert access_of(limited, session_id="s1").keys == {a, c}
    workspace_unjoin(c)
    assert access_of(MINE, session_id="s1").keys == {a, b}
    workspace_unjoin(a)
    assert access_of(MINE, session_id="s1").keys == {a}
