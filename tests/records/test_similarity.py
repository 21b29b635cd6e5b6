import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.similarity import CHARACTERS_MAX, SAME, similarity, text_hash

LONG = (
    "The importer reads each log as a stream and writes what it read to the mirror before the events, so that a "
    "kill between both loses nothing and the next run passes over the bytes that stand there already."
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use pnpm for all builds.", "use  pnpm for all builds"),
        ("Use pnpm for the build", "Use pnpm for builds"),
        ("The tests are run with make test.", "Tests run with `make test`"),
        ("数据库用的是 SQLite", "数据库用 SQLite"),
        (LONG, LONG.replace("each log", "each large log")),
    ],
)
def test_the_same_in_other_words(one, other):
    assert similarity(one, other) >= SAME
    assert similarity(other, one) >= SAME


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use npm for all builds.", "Use pnpm for all builds."),
        ("The timeout is 30 seconds.", "The timeout is 60 seconds."),
        ("The API depends on the worker.", "The worker depends on the API."),
        ("Deploy on Friday.", "Don't deploy on Friday."),
        ("Deploy on Friday.", "Never deploy on Friday."),
        ("部署在周五", "不部署在周五"),
        ("The config is in src/a.py", "The config is in src/b.py"),
        ("Migrate from npm to pnpm.", "Migrate to npm from pnpm."),
        ("甲服务把乙服务重启", "甲服务被乙服务重启"),
        (LONG, LONG.replace("reads each log", "reads each log off")),
        (LONG, LONG.replace("writes what", "only writes what")),
        (LONG, LONG.replace("passes over", "passes to")),
        (LONG, LONG.replace("stand there", "there stand").replace("next run", "run next")),
        (LONG, LONG.replace("loses nothing", "loses everything")),
        (LONG, LONG.replace("passes over", "never passes over")),
        (LONG, LONG.replace("the bytes", "the 12 bytes")),
        (LONG, LONG.replace("the mirror", "the mirror.zst")),
        ("Deploy to staging.", "Deploy to staging and production."),
    ],
)
def test_another_claim_is_never_taken_for_the_same(one, other):
    assert similarity(one, other) < SAME
    assert similarity(other, one) < SAME


@given(st.text(), st.text())
def test_it_is_a_share_and_a_text_is_like_itself(one, other):
    assert 0 <= similarity(one, other) <= 1
    assert similarity(one, one) == 1


def test_very_long_texts_are_the_same_or_not():
    text = "word " * CHARACTERS_MAX
    assert similarity(text, text.upper()) == 1
    assert similarity(text, text + "more") == 0


@pytest.mark.parametrize("other", ["  use\tPNPM\r\n", "Ｕｓｅ pnpm"])
def test_the_hash_knows_no_width_case_and_spacing(other):
    assert text_hash(other) == text_hash("Use pnpm")
    assert text_hash("Use npm") != text_hash("Use pnpm")
