"""The body index's files stay few, however many small writes there were."""

import json

from records.search.engine import Entry, Folder, Part, writing


def entry(number: int) -> Entry:
    return Entry(number, Part.CARD, f"lamp word{number}", "", 0, 0, None, None, 2)


def test_segments_are_merged_and_the_old_files_go(tmp_path):
    for number in range(18):
        with writing(tmp_path) as writer:
            writer.add(entry(number))
            writer.commit()
    segments = json.loads((tmp_path / "meta.json").read_text())["segments"]
    assert len(segments) < 10
    live = {segment["segment_id"].replace("-", "") for segment in segments}
    names = {path.name.split(".")[0] for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert names - live == {"meta", "sums"}
    assert len(Folder(tmp_path).any_of({"lamp": 1.0}, 100)) == 18


def test_what_was_not_committed_is_not_there(tmp_path):
    with writing(tmp_path) as writer:
        writer.add(entry(1))
        writer.commit()
        writer.add(entry(2))
    folder = Folder(tmp_path)
    assert [hit.record for hit in folder.any_of({"lamp": 1.0}, 100)] == [1]
