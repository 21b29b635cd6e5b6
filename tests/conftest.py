from pathlib import Path

import pytest

from records.home import ensure_home


@pytest.fixture(autouse=True)
def _never_the_real_home(settings, tmp_path) -> None:
    """No test can reach the store of whoever runs it, nor a file of their agents that is written."""
    settings.MEMEX_HOME = tmp_path / "home"
    settings.CLAUDE_STATE_FILE = tmp_path / ".claude.json"


@pytest.fixture
def memex_home(settings) -> Path:
    """An empty store of this test's own. No limit on free disk: a test machine may be nearly full."""
    settings.MEMEX_MIN_FREE_MB = 0
    ensure_home()
    return settings.MEMEX_HOME
