from .programs import run


def test_what_was_written_is_found_once_after_kills(tmp_path):
    result = run("search_processes", tmp_path, "kill", "12")
    assert result["written"] > 0
    assert (result["lost"], result["left"], result["twice"]) == ([], [], 0)


def test_processes_that_write_and_search_find_their_own(tmp_path):
    result = run("search_processes", tmp_path, "race", "4")
    assert result == {"found": 60, "missed": 0, "failed": 0, "lost": [], "left": [], "twice": 0}
