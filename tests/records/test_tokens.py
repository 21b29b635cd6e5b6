"""The one token estimator: how far off it is, and that text and bytes count alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.tokens import estimate, estimate_bytes

# Counted with current tokenizers: prose and code come to about 4.2 and 3.6 characters a token, Chinese to
# 0.6-0.7 tokens a character.
ENGLISH = "The worker keeps one lease in the database and renews it every ten seconds. " * 20
CHINESE = "会话结束以后，窗口里剩下的内容会被归档，以后可以逐字打开。" * 20


def test_english_and_chinese_are_weighed_by_script():
    assert estimate(ENGLISH) == pytest.approx(len(ENGLISH) / 4.2, rel=0.15)
    assert estimate(CHINESE) == pytest.approx(len(CHINESE) * 0.65, rel=0.15)
    assert estimate(ENGLISH + CHINESE) == pytest.approx(estimate(ENGLISH) + estimate(CHINESE), rel=0.02)


@given(st.text())
def test_text_and_bytes_count_alike(text):
    clean = text.encode("utf-8", "replace").decode()
    assert estimate_bytes(clean.encode()) == estimate(clean)


@given(st.text(min_size=1))
def test_anything_is_at_least_one_token(text):
    assert estimate(text) >= 1
    assert estimate("") == estimate_bytes(b"") == 0
