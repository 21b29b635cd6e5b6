from .programs import run


def test_killed_anywhere_every_record_can_be_read_and_the_store_mended(tmp_path):
    result = run("capacity_processes", tmp_path, "kill", "10")
    assert result["rounds"] > 0
    assert (result["lost"], result["left"], result["again"]) == ([], [], [])


def test_killed_between_file_and_row(tmp_path):
    assert run("capacity_processes", tmp_path, "between", "1") == {
        "lost": [], "unfinished": 1, "found": ["place"], "moved": True, "fits": True, "left": [], "again": [],
    }  # fmt: skip


def test_of_several_that_compress_a_pool_each_moves_its_own_or_is_refused(tmp_path):
    result = run("capacity_processes", tmp_path, "race", "4")
    assert (result["answered"], result["failed"]) == (4, 0)
    assert result["moved"] == result["cold"] == 20
    assert result["runs"] == result["ran"] >= 1
    assert (result["left"], result["lost"]) == ([], [])
