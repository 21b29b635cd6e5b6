import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from records import fields, header
from records.models import Kind, Scope, Status, Trust
from records.recordfile import (
    NewerSchemaError,
    RecordDraft,
    body_of,
    parse,
    render,
    replace_front_matter,
    validate,
)

from .drafts import WHEN, make_draft

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
HOSTILE = st.sampled_from(
    [
        "---",
        "no",
        "2024-05-01",
        "a: b",
        "# x",
        "- x",
        "'",
        '"',
        "{}",
        "*a &b",
        "!!x",
        "\\",
        "0x1F",
        "~",
        "项目",
        "\x85",
    ]
)
TITLE = st.one_of(HOSTILE, TEXT).filter(lambda text: len(text.splitlines()) < 2)
BODY = st.one_of(
    TEXT,
    st.lists(st.sampled_from(["---\n", "\r\n", "\ufeff", "\t", "\n", "x", "---", "title: y\n"])).map("".join),
)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
MOMENT = st.integers(min_value=1, max_value=2**53)
DRAFT = st.builds(
    RecordDraft,
    id=st.just("mem_0123456789"),
    kind=st.sampled_from(sorted(fields.KINDS)),
    scope=st.sampled_from(sorted(fields.SCOPES)),
    workspace=TEXT,
    workspace_key=TEXT,
    session_id=TEXT,
    title=TITLE,
    summary=TEXT,
    use_when=TEXT,
    status=st.sampled_from(sorted(fields.STATUSES)),
    trust=st.sampled_from(sorted(fields.TRUSTS)),
    confidence=st.none() | st.floats(0, 1),
    slot=TEXT,
    tags=st.dictionaries(TEXT, st.lists(TEXT, max_size=3), max_size=3),
    entities=st.lists(VALUE, max_size=3),
    sources=st.lists(st.dictionaries(TEXT, VALUE, max_size=2), max_size=2),
    links=st.dictionaries(TEXT, VALUE, max_size=3),
    provenance=st.dictionaries(TEXT, VALUE, max_size=3),
    created_at=MOMENT,
    updated_at=MOMENT,
    extra=st.dictionaries(st.sampled_from(["mood", "x-note", "Ours"]), VALUE, max_size=3),
    body=BODY,
)


def by_hand(block: str, body: str = "text\n") -> bytes:
    return f"---\n{block}---\n\n{body}".encode()


@given(DRAFT)
def test_what_is_rendered_is_read_back(draft):
    parsed = parse(render(draft))
    assert parsed.problems == []
    assert RecordDraft(**parsed.draft_fields, body=parsed.body.decode()) == draft


@given(DRAFT)
def test_any_yaml_reader_reads_the_same(draft):
    data = render(draft)
    parts = header.split(data)
    block = data[parts.start : parts.end].decode()
    # As a YAML reader that knows no types: what is in quotes, and the names.
    read = yaml.load(block, yaml.BaseLoader)
    assert list(read) == [*fields.FIELDS, *draft.extra]
    assert (read["title"], read["tags"], read["use_when"]) == (draft.title, draft.tags, draft.use_when)


def test_the_choices_are_those_of_the_model():
    assert set(Kind) == fields.KINDS
    assert set(Scope) == fields.SCOPES
    assert set(Status) == fields.STATUSES
    assert set(Trust) == fields.TRUSTS


def test_the_fields_stand_in_the_order_of_the_format():
    lines = render(make_draft()).decode().split("---\n")[1].splitlines()
    assert [line.split(":")[0] for line in lines] == list(fields.FIELDS)
    assert '"source":["compaction-archive"]' in next(line for line in lines if line.startswith("tags"))
    assert json.loads(next(line for line in lines if line.startswith("created_at")).split(": ")[1]) == WHEN


def test_tokens_and_times_are_filled_in():
    draft = make_draft(body="word " * 40)
    assert (draft.tokens, draft.updated_at) == (50, WHEN)


def test_text_that_utf8_cannot_hold_is_replaced():
    draft = make_draft(title="a\ud800b", body="nul\0 and \udfff", tags={"topic": ["\ud83d"]})
    parsed = parse(render(draft))
    assert parsed.draft_fields["title"] == "a\ufffdb"
    assert parsed.draft_fields["tags"] == {"topic": ["\ufffd"]}
    assert parsed.body.decode() == "nul\ufffd and \ufffd"


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("title: no", "title", "no"),
        ("title: 2024-05-01", "title", "2024-05-01"),
        ("title: 1.10", "title", "1.10"),
        ("title: >\n  two\n  lines", "title", "two lines\n"),
        ("title:\t'quoted'", "title", "quoted"),
        ("slot:", "slot", ""),
        ("created_at: 1970-01-02", "created_at", 86_400_000),
        ("created_at: 1970-01-01T01:00:00+01:00", "created_at", 0),
        ("tags: [a, no, 3]", "tags", {"topic": ["a", "no", "3"]}),
        ("tags: a, b", "tags", {"topic": ["a", "b"]}),
        ("tags:\n- a\n- b", "tags", {"topic": ["a", "b"]}),
        ("tags:\n\twhere:\n\t- a", "tags", {"where": ["a"]}),
        ("tags: {where: a}", "tags", {"where": ["a"]}),
        ("confidence: 0.5", "confidence", 0.5),
        ("entities: x", "entities", ["x"]),
    ],
)
def test_what_people_write_is_understood(line, name, value):
    parsed = parse(by_hand(f"id: mem_0123456789\n{line}\n"))
    assert parsed.draft_fields[name] == value
    assert parsed.problems == []


@pytest.mark.parametrize(
    "line",
    [
        "status: happy",
        "tokens: many",
        "tokens: -1",
        "created_at: yesterday",
        "created_at: 99999999999999999999999999",
        "links: [a]",
        "confidence: .inf",
        "title: {a: 1}",
        "sources: [a]",
    ],
)
def test_what_makes_no_sense_is_named_and_left_out(line):
    parsed = parse(by_hand(f"{line}\nsummary: kept\n"))
    assert len(parsed.problems) == 1
    assert parsed.draft_fields == {"summary": "kept", "extra": {}}


@pytest.mark.parametrize(
    "data", [b"", b"# Title\n\ntext", b"---\nnever closed\n", b"---\nprose\n---\nmore\n", b"-\n---"]
)
def test_a_file_without_a_block_is_all_body(data):
    parsed = parse(data)
    assert (parsed.has_header, parsed.body, body_of(data)) == (False, data, data)
    assert parsed.problems == ["has no front matter"]


@pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b"\r\n", b"\xef\xbb\xbf  \n"])
def test_bom_crlf_and_blank_lines_are_tolerated(prefix):
    parsed = parse(prefix + b"---\r\ntitle: a title\r\nmood: good\r\n--- \r\n\r\nline\r\n---\r\n")
    assert parsed.draft_fields == {"title": "a title", "extra": {"mood": "good"}}
    assert parsed.body == b"line\r\n---\r\n"


def test_foreign_keys_keep_their_types():
    parsed = parse(by_hand('n: 3\nf: 0.5\nt: true\ns: "3"\nl: [1, two, NaN]\nw: no\ni: 1e999\nv: 1.2.3\n'))
    numbers = {"n": 3, "f": 0.5, "t": True, "s": "3", "l": [1, "two", "NaN"]}
    assert parsed.draft_fields["extra"] == {**numbers, "w": "no", "i": "1e999", "v": "1.2.3"}


@pytest.mark.parametrize(
    "block",
    [
        "title: a: b\n",
        "title: 'open\n",
        "a: &a [1]\nb: *a\n",
        "a: " + "[" * 5000 + "]" * 5000 + "\n",
        "a: [!!float .nan]\n",
        "a: [1e999]\n",
        "a: " + "[" * 120 + "]" * 120 + "\n",
        "a: " + "{x: " * 900 + "1" + "}" * 900 + "\n",
        "a: [!!python/object:os.system x]\n",
        "a: \x01\n",
    ],
)
def test_a_block_that_cannot_be_read_is_an_error_and_the_body_can_be_had(block):
    data = by_hand(block)
    with pytest.raises(header.HeaderError):
        parse(data)
    assert body_of(data) == b"text\n"


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parser(data):
    for each in (data, b"---\n" + data, b"---\n" + data + b"\n---\n"):
        try:
            assert each.endswith(parse(each).body)
        except header.HeaderError:
            assert each.endswith(body_of(each))


@given(BODY, TITLE.filter(lambda title: title.strip()))
def test_a_change_keeps_every_byte_of_the_body(body, title):
    before = render(make_draft(body=body))
    after = replace_front_matter(before, {"title": title, "tags": {"topic": ["x"]}})
    assert after[header.split(after).body :] == body.encode()
    expected = parse(before).draft_fields | {"title": title, "tags": {"topic": ["x"]}}
    assert parse(after).draft_fields == expected


def test_a_change_keeps_comments_foreign_keys_and_line_ends():
    data = b"\xef\xbb\xbf---\r\n# mine\r\ntitle: >\r\n  old\r\n  title\r\nmood: good  # today\r\ntags:\r\n- a\r\n---\r\nbody\r\n"
    changed = replace_front_matter(data, {"title": "new", "tags": {"topic": ["b"]}, "slot": "s"})
    assert changed == (
        b'\xef\xbb\xbf---\r\n# mine\r\ntitle: "new"\r\nmood: good  # today\r\n'
        b'tags: {"topic":["b"]}\r\nslot: "s"\r\n---\r\nbody\r\n'
    )


def test_a_change_that_lines_cannot_express_writes_the_block_anew():
    data = by_hand('{title: "old", mood: good, slot: s}\n')
    changed = parse(replace_front_matter(data, {"title": "new"}))
    assert changed.draft_fields == {"title": "new", "slot": "s", "extra": {"mood": "good"}}
    assert changed.body == b"text\n"


def test_a_file_without_a_block_gets_one():
    changed = parse(replace_front_matter(b"just text\n", {"title": "new"}))
    assert (changed.draft_fields, changed.body) == ({"title": "new", "extra": {}}, b"just text\n")


def test_a_newer_schema_is_read_but_not_rewritten():
    data = by_hand("schema: 2\ntitle: from the future\nhologram: {a: 1}\n")
    parsed = parse(data)
    assert parsed.is_newer
    assert parsed.draft_fields["title"] == "from the future"
    with pytest.raises(NewerSchemaError):
        replace_front_matter(data, {"title": "past"})


def test_a_change_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="status"):
        replace_front_matter(render(make_draft()), {"status": "happy"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "../../etc"}, "no record id"),
        ({"kind": "poem"}, "kind must be one of"),
        ({"scope": "session", "session_id": ""}, "session_id"),
        ({"status": "gone"}, "status must be one of"),
        ({"trust": "full"}, "trust must be one of"),
        ({"title": "x" * 161}, "160"),
        ({"title": "two\nlines"}, "one line"),
        ({"title": "two\u2028lines"}, "one line"),
        ({"title": "  "}, "one line"),
        ({"use_when": "x" * 401}, "400"),
        ({"summary": "x" * 1001}, "1000"),
        ({"workspace_key": ""}, "workspace_key"),
        ({"schema": 2}, "schema"),
        ({"extra": {"title": "x"}}, "extra"),
    ],
)
def test_a_draft_that_breaks_a_rule_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        validate(make_draft(**changes))


def test_a_draft_at_the_limits_is_fine():
    validate(make_draft(title="x" * 160, use_when="x" * 400, summary="x" * 1000))
