from .programs import run


def test_nothing_acknowledged_is_lost_when_writers_are_killed(tmp_path):
    result = run("processes", tmp_path, "kill", "15")
    assert result["written"] > 0
    assert result["lost"] == []
    assert result["left"] == []


def test_processes_that_archive_the_same_make_each_record_once(tmp_path):
    result = run("processes", tmp_path, "race", "4")
    assert result == {"created": 20, "distinct": 20, "rows": 20, "files": 20, "failed": 0, "left": []}
