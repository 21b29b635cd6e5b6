"""The generated text is what its docstring says, and the same every time."""

import re
from collections import Counter

import pytest

from records.bench.corpus import MIX, Corpus, Sort
from records.search.extraction import extract
from records.search.terms import chunk_exact
from records.tokens import estimate

HAN = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def corpus():
    return Corpus()


@pytest.fixture(scope="module")
def texts(corpus):
    return list(corpus.texts(40, 4_000))


def test_it_is_the_same_every_time_and_each_text_differs(corpus, texts):
    again = Corpus().text(7, 4_000)
    assert again == texts[7]
    assert corpus.question(texts[7], 3) == Corpus().question(again, 3)
    assert len({text.body for text in texts}) == len({text.title for text in texts}) == len(texts)
    assert Corpus(seed=2).text(7, 4_000).body != again.body


@pytest.mark.parametrize("tokens", [50, 1_000, 20_000])
def test_it_has_about_the_tokens_that_were_asked_for(corpus, tokens):
    sizes = [estimate(corpus.text(number, tokens).body) for number in range(10)]
    assert tokens <= sum(sizes) / len(sizes) <= 1.05 * tokens + 150


def test_words_names_chinese_and_events_are_in_proportion(texts):
    body = "".join(text.body for text in texts)
    chunks = body.split()
    names = sum(bool(chunk_exact(chunk)) for chunk in chunks if not HAN.search(chunk))
    assert 0.15 < names / len(chunks) < 0.4
    han = "".join(HAN.findall(body))
    assert 0.08 < len(han.encode()) / len(body.encode()) < 0.25
    assert len(re.findall(r"^### \[#\d+\] ", body, re.M)) > 10 * len(texts)
    assert "Error: " in body
    counts = Counter(extract(body).terms.split())
    common = sum(count for _, count in counts.most_common(100)) / counts.total()
    assert 0.2 < common < 0.7
    assert sum(count == 1 for count in counts.values()) > 0.2 * len(counts)


def test_questions_of_every_sort_are_drawn_from_their_text(corpus, texts):
    asked = [(text, corpus.question(text, turn)) for text in texts for turn in range(len(MIX))]
    sorts = Counter(question.sort for _, question in asked)
    assert sorts.keys() == set(Sort)
    for text, question in asked:
        if question.sort is Sort.QUESTION:
            words = question.text.rstrip("?").split()
            assert sum(word in text.topic for word in words) >= 3
        else:
            assert question.text in text.body


def test_a_short_text_is_asked_for_in_words(corpus):
    text = corpus.text(0, 1)
    assert all(corpus.question(text, turn).text for turn in range(len(MIX)))
