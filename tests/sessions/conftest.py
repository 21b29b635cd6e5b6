from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache

from sessions_app.archiving import archive_run
from sessions_app.models import AgentSession

from .stories import write_log


@pytest.fixture
def agent_home(memex_home, settings, tmp_path) -> Path:
    """Where an agent keeps its logs; the other agents have none."""
    cache.clear()
    settings.AGENT_HOMES = {name: tmp_path / name for name in ("claude-code", "codex", "dsh")}
    settings.MEMEX_IDLE_ARCHIVE_HOURS = 0
    return tmp_path / "claude-code"


@pytest.fixture
def owner(client, agent_home):
    client.force_login(User.objects.create_superuser("owner"))
    return client


@pytest.fixture
def archived(owner, agent_home):
    """One session with two compactions, archived at L3."""
    write_log(agent_home, 1)
    archive_run(level="l3")
    return AgentSession.objects.get()
