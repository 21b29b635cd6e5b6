"""A pattern means the same to RE2 and to ripgrep, and what can't be searched for is refused with advice."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.search import grep_rg
from records.search.grep_pattern import PATTERN_CHARACTERS, BadPattern, pattern_compile


def found(pattern: str, text: str, **how) -> list[str]:
    compiled = pattern_compile(pattern, **how)
    return [match.group().decode() for match in compiled.re2.finditer(text.encode())]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"\bdef\s+test_\w+\(", "  def  test_abc(self)", ["def  test_abc("]),
        ("数据库", "这里的数据库连接", ["数据库"]),
        (r"数.库\d{2}", "数据库42", ["数据库42"]),
        ("ÜBER", "Größe über alles", ["über"]),
        ("σ", "Σς", ["Σ", "ς"]),
        (r"\bconfig\b", "在config中 reconfig", ["config"]),
        ("a.c$", "abc\r\nabcd\nadc", ["abc\r", "adc"]),
        ("^b", "ab\nb", ["b"]),
        (r"\Ab\z", "ab\nb\nbc", ["b"]),
        ("a[^x]b", "a\nb a-b", ["a-b"]),
        (r"a\sb", "a\nb a b", ["a b"]),
        ("(?s)a.b", "a\nb", []),
        (r"\Qa.b(\E+", "a.b(( axb(", ["a.b(("]),
        (r"[[:digit:]\pL-]+", "ä-1 +", ["ä-1"]),
        (r"[\D]", "1a", ["a"]),
        (r"\p{^L}", "ä1", ["1"]),
        (r"[]a[]+", "x]a[", ["]a["]),
        (r"\x41\x{6570}\101\.", "a数a.", ["a数a."]),
        ("x{,3}", "x{,3} xxx", ["x{,3}"]),
        ("(?P<name>a)|(b)", "ab", ["a", "b"]),
        ("(?-i)A", "aA", ["A"]),
        ("(?i:a)b", "Ab AB", ["Ab", "AB"]),
    ],
)
def test_what_patterns_match(pattern, text, expected):
    assert found(pattern, text) == expected


def test_case_counts_when_asked_for():
    assert found("Ab", "ab Ab", ignore_case=False) == ["Ab"]


@pytest.mark.parametrize("text", [r"a.b\w[", "(?=x)", "数.据", r"\E$^", "a b\tc", "x*"])
def test_a_literal_is_taken_as_it_is(text):
    assert found(text, f"-{text}- axb", literal=True) == [text]


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        ("", "say what to look for"),
        ("(?=a)b", "Lookaheads"),
        (r"(a)\1", "backreferences"),
        ("(", r"missing \)"),
        ("a\nb", "one of the lines"),
        (r"a\nb", r"leave \\n out"),
        (r"\C", "any character"),
        ("x*", r"x\+ rather than x\*"),
        ("|a", "every line"),
        ("^$", "every line"),
        ("\ud800", "surrogate"),
        ("a" * (PATTERN_CHARACTERS + 1), "a part of it"),
        ("((a{1,900}){1,900}){1,900}", "--literal"),
    ],
)
def test_what_cannot_be_searched_for_is_refused_with_advice(pattern, advice):
    with pytest.raises(BadPattern, match=advice):
        pattern_compile(pattern)


ATOMS = st.sampled_from(
    ["a", "b", "A", "k", "é", "É", "ß", "ſ", "\u212a", "数", "_", "1", " ", ".", "-", "{", "}", r"\w", r"\W", r"\d",
     r"\D", r"\s", r"\S", r"\b", r"\B", "^", "$", r"\A", r"\z", "[a-c]", "[^a-c]", r"[\w-]", r"[\D]", r"[^\S]",
     "[[:alpha:]]", "[^[:upper:]]", r"\pL", r"\p{Lu}", r"\P{L}", r"[\p{Han}x]", "[]a]", "[a&&b]", "[a~~b]", "[a--b]",
     "[a[b]", r"\.", r"\x41", r"\Qa.\E", "{,2}", r"[\x00-\x20]", r"[^\n]", "(?i:k)", "(?-i:é)", "(?s:.)", "(?m)",
     "(?-m:^)", "(?U:a+)", r"\t", r"\r"]
)  # fmt: skip
REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "+?", "{2}", "{0,2}"])
PIECES = st.builds(lambda atom, repeat: atom + ("" if atom == "(?m)" else repeat), ATOMS, REPEATS)
SEQUENCES = st.lists(PIECES, min_size=1, max_size=4).map("".join)
PATTERNS = st.one_of(
    SEQUENCES,
    st.builds("{}|{}".format, SEQUENCES, SEQUENCES),
    st.builds("{}({}){}".format, SEQUENCES, SEQUENCES, SEQUENCES),
)
CHARACTERS = st.sampled_from(
    [character.encode() for character in "abAkK\u212aéÉßẞſ数据_1 \t.(){}-&~[],\r\0\x0b\u2028\x85"]
    + [b"\xff", b"\xe6\x95", b"\x80"]
)
LINES = st.lists(CHARACTERS, max_size=6).map(b"".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(PATTERNS, min_size=1, max_size=8), st.booleans(), st.lists(LINES, min_size=20, max_size=40))
def test_ripgrep_and_re2_find_the_same_lines(tmp_path_factory, patterns, ignore_case, lines):
    data = b"\n".join(lines)
    path = tmp_path_factory.mktemp("agree") / "text"
    path.write_bytes(data)
    for text in patterns:
        try:
            pattern = pattern_compile(text, ignore_case=ignore_case)
        except BadPattern:
            continue
        matches = list(pattern.re2.finditer(data))
        assert not any(b"\n" in match.group() for match in matches)
        ours = {data.count(b"\n", 0, match.start()) + 1 for match in matches}
        if data.endswith(b"\n"):
            ours.discard(data.count(b"\n") + 1)  # where ripgrep counts no line
        assert sorted(ours) == ripgrep_lines(pattern.ripgrep, path), text


def ripgrep_lines(pattern: str, path) -> list[int]:
    program = grep_rg.binary()
    assert program
    options = ["--no-config", "-uuu", "--text", "--encoding=none", "--line-number", "--no-heading"]
    result = subprocess.run([program, *options, "-e", pattern, "--", path], capture_output=True)
    assert result.returncode in (0, 1), result.stderr.decode()
    return sorted(int(line.split(b":")[0]) for line in result.stdout.split(b"\n") if line)
