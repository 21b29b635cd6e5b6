"""Where JSON values begin and end, against what a parser makes of them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.logs.json_slices import elements, is_json, loads, members, members_and_elements, value_end

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
SPACED = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n\t", " :\r\n ")])


def written(value: object, separators: tuple[str, str], *, ascii_only: bool) -> bytes:
    return json.dumps(value, separators=separators, ensure_ascii=ascii_only).encode()


@given(st.lists(VALUES), SPACED, st.booleans())
def test_the_slices_of_a_list_are_its_values(values, separators, ascii_only):
    data = written(values, separators, ascii_only=ascii_only)
    found, end = elements(data)
    assert end == len(data)
    assert [json.loads(data[start:stop]) for start, stop in found] == values
    assert is_json(data)


@given(st.dictionaries(st.text(), VALUES), SPACED, st.booleans())
def test_the_slices_of_an_object_are_its_members(values, separators, ascii_only):
    data = written(values, separators, ascii_only=ascii_only)
    assert {key: json.loads(data[start:end]) for key, start, end in members(data)} == values
    assert value_end(data, 0) == len(data)
    assert is_json(data)


@given(VALUES, st.data())
def test_what_a_parser_refuses_is_no_json(value, data):
    text = written(value, (",", ":"), ascii_only=True)
    at = data.draw(st.integers(0, len(text)))
    changed = text[:at] + data.draw(st.sampled_from([b",", b"]", b"{", b'"', b":", b" ", b"x"])) + text[at:]
    try:
        json.loads(changed)
        valid = True
    except ValueError:
        valid = False
    assert is_json(changed) == valid


def test_the_events_of_a_request_are_found_beside_other_members():
    data = b' {"a": {"events": [9]}, "events": [1, {"b": "]"}, "x\\"y"], "c": []} \n'
    spans, found = members_and_elements(data, "events")
    assert found is not None
    assert [data[start:end] for start, end in found] == [b"1", b'{"b": "]"}', b'"x\\"y"']
    assert data[slice(*spans["a"])] == b'{"events": [9]}'
    assert members_and_elements(b"{}", "events") == ({}, None)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b'{"events": [1,]}', b'{"events": [1 2]}', b'{"events": ["a\nb"]}', b'{"events": [1]',
        b'{"events": [1]} x', b'{"events" [1]}', b'{events: [1]}', b'{"events": ["a]}', b'{"events": [1],}',
        b'{"events": {"a": 1}}',
    ],
)  # fmt: skip
def test_a_request_with_a_wrong_frame_is_refused(data):
    with pytest.raises(ValueError, match="at byte"):
        members_and_elements(data, "events")


def test_what_is_nested_too_deeply_for_a_parser_is_read_around():
    deep = b"[" * 5_000 + b"]" * 5_000
    data = b'{"id": "e1", "content": [{"type": "text", "text": "hello"}, {"n": ' + deep + b"}]}"
    value = loads(data)
    assert value["id"] == "e1"
    assert value["content"][0]["text"] == "hello"
    assert is_json(data)
    with pytest.raises(ValueError, match="no valid JSON"):
        loads(data.replace(b"[[]]", b"[[}]"))
    with pytest.raises(ValueError, match="no valid JSON"):
        loads(b'{"id": "e1"} {"id": "e2"}')
