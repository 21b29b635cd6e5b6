import pytest
from mcp import types

from memex_site.mcp.calls import TOOLS
from memex_site.mcp.instructions import INSTRUCTIONS
from memex_site.mcp.server import first_folder

# What Claude Code keeps of a manual, and of a description.
KEPT = 2_048


def test_nothing_that_a_model_is_told_is_cut() -> None:
    assert len(INSTRUCTIONS) < KEPT
    assert all(len(tool.description) < KEPT for tool in TOOLS.values())


@pytest.mark.parametrize(
    ("uris", "folder"),
    [
        (["file:///home/dev/demo"], "/home/dev/demo"),
        (["file:///home/dev/%E9%A1%B9%E7%9B%AE%20a"], "/home/dev/项目 a"),
        (["file:///home/dev/项目"], "/home/dev/项目"),
        (["file://localhost/home/dev/a", "file:///home/dev/b"], "/home/dev/a"),
        (["file://elsewhere/home/dev/a", "file:///home/dev/b"], "/home/dev/b"),
        ([], ""),
    ],
)
def test_the_folder_that_a_client_works_in(uris, folder) -> None:
    assert first_folder(types.ListRootsResult(roots=[types.Root(uri=uri) for uri in uris])) == folder
