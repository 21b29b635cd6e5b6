"""Edits of JSON texts: every byte of others stays, and taking an edit back gives the text as it was."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memex_site.connect.errors import EditRefused
from memex_site.connect.jsonedit import Trace, append, remove
from memex_site.connect.jsonscan import scan, value_of

OURS = {"command": "memex", "args": ["a", {"b": "数"}]}
PLACES = [
    (("hooks", "Stop"), None),
    (("hooks", "Start"), None),
    (("mcpServers",), "memex"),
    ((), "memex"),
    (("hooks", "deep", "deeper"), "memex"),
]

# Time decides nothing here, on whatever machine.
random_texts = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def ours(text, root, path=()):
    """The first place where OURS stands."""
    for child in root.children:
        if value_of(text, child.node) == OURS:
            return path, root, child
        if child.key is not None and (found := ours(text, child.node, (*path, child.key))):
            return found
    return None


def parsed(text):
    root = scan(text)
    return None if root is None else value_of(text, root)


# Texts as people and programs write them: white space and comments wherever they may stand.
spaces = st.text(" \t\r\n", max_size=4)
comments = st.sampled_from(["// it's {a: 1,\n", "/* , ] } */", "/* // */", "//\r", '// "\r\n'])
gaps = st.lists(spaces | comments, max_size=3).map("".join)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
).map(json.dumps)
keys = st.sampled_from(["a", "b/*", "c//", 'd"', "é", "", "hooks2"])


@st.composite
def containers(draw, inner, is_object, fixed=()):
    """`fixed`: members that must be there, with strategies for their values."""
    members = []
    for key, strategy in fixed:
        members.append((key, draw(strategy)))
    if is_object:
        members += [(key, draw(inner)) for key in draw(st.lists(keys, max_size=3, unique=True))]
    else:
        members += [(None, draw(inner)) for _ in range(draw(st.integers(0, 3)))]
    members = draw(st.permutations(members))
    parts = []
    for key, value in members:
        name = f"{json.dumps(key)}{draw(gaps)}:{draw(gaps)}" if key is not None else ""
        parts.append(f"{draw(gaps)}{name}{value}{draw(gaps)}")
    body = ",".join(parts)
    if parts and draw(st.booleans()):
        body += "," + draw(gaps)
    if not parts:
        body = draw(gaps)
    return ("{" + body + "}") if is_object else ("[" + body + "]")


values = st.recursive(
    scalars,
    lambda inner: st.booleans().flatmap(lambda is_object: containers(inner, is_object)),
    max_leaves=6,
)
lists = containers(values, False)


@st.composite
def documents(draw):
    if draw(st.integers(0, 9)) == 0:
        return draw(gaps)
    events = draw(st.lists(st.sampled_from(["Stop", "Start"]), unique=True))
    hooks = containers(values, True, [(event, lists) for event in events])
    fixed = draw(st.sampled_from([[], [("hooks", hooks)], [("mcpServers", containers(values, True))]]))
    return draw(gaps) + draw(containers(values, True, fixed)) + draw(gaps)


def is_within(part: str, whole: str) -> bool:
    """Whether `part` is `whole` with some characters left out. White space doesn't count: the brackets of an
    empty container are set anew."""
    rest = iter("".join(whole.split()))
    return all(sign in rest for sign in "".join(part.split()))


@random_texts
@given(documents(), st.lists(st.sampled_from(PLACES), min_size=1, unique=True))
def test_an_edit_taken_back_leaves_no_trace(text, places):
    if text.strip() and not text.endswith(("\n", "\r")) and scan(text) is None:
        text += "\n"
    edited, trace = text, Trace()
    for path, key in places:
        edited = append(edited, path, key, OURS, trace)
    data = parsed(edited)
    for path, key in places:
        held = data
        for name in path:
            held = held[name]
        assert (held[-1] if key is None else held[key]) == OURS
    assert is_within(text, edited)
    # A run of the command later knows the trace from a file.
    trace = Trace.from_json(json.loads(json.dumps(trace.to_json())))
    assert remove(edited, ours, trace) == text
    if {path[:1] for path, _ in places} == {("hooks",)}:
        assert remove(edited, ours, trace, "hooks") == text
    without = remove(edited, ours, None)
    assert ours(without, scan(without)) is None


@random_texts
@given(documents(), st.sampled_from(PLACES), values, st.sampled_from(["first", "last"]))
def test_what_others_add_meanwhile_stays(text, place, value, where):
    """As an agent does that writes a setting of its own."""
    if scan(text) is None:
        text = "{}"
    trace = Trace()
    edited = append(text, *place, OURS, trace)
    root = scan(edited)
    at, rest = (root.start + 1, ",") if where == "first" else (root.end - 1, "")
    comma = "" if where == "first" or root.children[-1].comma is not None else "\n,"
    changed = edited[:at] + "\n" + comma + f'"zz": {value}{rest}' + edited[at:]
    undone = remove(changed, ours, trace)
    before, after = parsed(text), parsed(undone)
    assert after.pop("zz") == json.loads(json.dumps(parsed(value)))
    assert after == before
    assert value in undone


@random_texts
@given(documents(), st.sampled_from(PLACES))
def test_a_file_that_an_agent_wrote_anew_is_cleaned_as_well(text, place):
    trace = Trace()
    data = parsed(append(text, *place, OURS, trace))
    rewritten = json.dumps(data, indent=2, ensure_ascii=False)
    assert (parsed(remove(rewritten, ours, trace)) or {}) == (parsed(text) or {})


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("", '{\n  "m": 1\n}\n'),
        ("{}", '{\n  "m": 1\n}'),
        ('{"a": 1}', '{"a": 1, "m": 1}'),
        ('{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "m": 1\n}\n'),
        ('{\r\n\t"a": 1\r\n}', '{\r\n\t"a": 1,\r\n\t"m": 1\r\n}'),
        ('{\n    "a": 1, // why\n}', '{\n    "a": 1, // why\n    "m": 1,\n}'),
        ('{\n    "a": 1 // why\n}', '{\n    "a": 1, // why\n    "m": 1\n}'),
        ("{\n  // nothing yet\n}", '{\n  // nothing yet\n  "m": 1\n}'),
    ],
)
def test_an_edit_looks_as_its_surroundings_do(text, edited):
    assert append(text, (), "m", 1, Trace()) == edited


def test_lines_within_are_indented_as_the_file_is():
    text = '{\n\t"a": {\n\t\t"b": []\n\t}\n}\n'
    expected = '{\n\t"a": {\n\t\t"b": [\n\t\t\t{\n\t\t\t\t"c": 1\n\t\t\t}\n\t\t]\n\t}\n}\n'
    assert append(text, ("a", "b"), None, {"c": 1}, Trace()) == expected


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3: a comma"),
        ('{"a": }', "line 1, column 7: a value"),
        ("{'a': 1}", "line 1, column 2: a key in double quotes"),
        ('{"a" 1}', "line 1, column 6: a colon"),
        ('{"a": 1}}', "line 1, column 9: the end"),
        ('{"a": "\n"}', "line 1, column 7: a value"),
        ('{"a": [1, 2}', "line 1, column 12: a comma"),
        ('{"a": NaN}', "line 1, column 7: a value"),
        ('{"b": [1, NaN]}', "line 1, column 11: a value"),
        ('{"a": 01}', "line 1, column 8: a comma"),
        ('{"hooks": 01}', "line 1, column 11: a value"),
        ("{,}", "line 1, column 2: a key"),
        ("{/* }", "line 1, column 2: a key"),
        ('{"a": 1', "line 1, column 8: a comma"),
        ("[" * 10_000, "nested too deeply"),
        ("[]", "the whole is a list, not an object"),
        ('{"hooks": []}', "line 1, column 11: hooks is a list, not an object"),
        ('{"hooks": {"Stop": "x"}}', "hooks.Stop is a plain value, not a list"),
        ('{"hooks": {}, "hooks": {}}', 'the key "hooks" stands there more than once'),
    ],
)
def test_what_cannot_be_edited_safely_is_refused_by_its_place(text, where):
    with pytest.raises(EditRefused, match=where.replace(".", r"\.")):
        append(text, ("hooks", "Stop"), None, OURS, Trace())


def test_a_large_file_is_edited_in_reasonable_time():
    data = {"projects": {f"/p/{number}": {"history": ["x" * 50] * 20} for number in range(1000)}}
    text = json.dumps(data, indent=2)
    trace = Trace()
    edited = append(text, ("mcpServers",), "memex", OURS, trace)
    assert json.loads(edited) == data | {"mcpServers": {"memex": OURS}}
    assert remove(edited, ours, trace) == text
