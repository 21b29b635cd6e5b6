import pytest

from memex_site.mcp.parameters import BadCall, Parameter, checked, schema_of

TAKES = (
    Parameter("query", "string", "What to look for.", required=True, low=1, high=10),
    Parameter("limit", "integer", "Hits.", default=5, low=1, high=50),
    Parameter("kinds", "strings", "Kinds.", choices=("note", "fact")),
    Parameter("ratio", "number", "Share.", low=0.1, high=0.9),
    Parameter("tags", "texts", "Tags."),
    Parameter("links", "objects", "Links."),
    Parameter("raw", "boolean", "Raw.", default=False),
)


def test_what_is_not_given_has_its_default() -> None:
    assert checked("t", TAKES, {"query": "x", "ratio": None}) == {
        "query": "x", "limit": 5, "kinds": None, "ratio": None, "tags": None, "links": None, "raw": False,
    }  # fmt: skip


def test_what_is_given_is_taken_as_it_is() -> None:
    given = {
        "query": "x", "limit": 7, "kinds": ["note"], "ratio": 0.5, "tags": {"topic": ["a"]}, "links": [{"to": "b"}],
        "raw": True,
    }  # fmt: skip
    assert checked("t", TAKES, given) == given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"query": "x", "limits": 3}, "t has no argument 'limits'. Did you mean limit?"),
        ({"query": "x", "cwd": "/w"}, "t has no argument 'cwd'. It takes: query, limit,"),
        ({}, "t needs query: What to look for."),
        ({"query": 5}, "query must be a string, not 5."),
        ({"query": " "}, "query is empty."),
        ({"query": "x" * 11}, "query has 11 characters; the most is 10."),
        ({"query": "x", "limit": "5"}, "limit must be a whole number, not '5'."),
        ({"query": "x", "limit": True}, "limit must be a whole number, not True."),
        ({"query": "x", "limit": 0}, "limit is 0; the least is 1."),
        ({"query": "x", "limit": 51}, "limit is 51; the most is 50."),
        ({"query": "x", "kinds": "note"}, "kinds must be a list of strings, not 'note'."),
        ({"query": "x", "kinds": ["not"]}, "kinds must be note or fact, not 'not'."),
        ({"query": "x", "ratio": float("nan")}, "ratio"),
        ({"query": "x", "tags": ["a"]}, "tags must be an object of lists of strings"),
        ({"query": "x", "raw": "yes"}, "raw must be true or false, not 'yes'."),
    ],
)
def test_a_wrong_call_is_told_what_is_wrong(given, said) -> None:
    with pytest.raises(BadCall) as refused:
        checked("t", TAKES, given)
    assert said in str(refused.value)


def test_the_schema_says_the_same() -> None:
    schema = schema_of(TAKES)
    assert schema["required"] == ["query"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["limit"] == {
        "type": "integer", "minimum": 1, "maximum": 50, "description": "Hits.", "default": 5,
    }  # fmt: skip
    assert schema["properties"]["kinds"]["items"] == {"type": "string", "enum": ["note", "fact"]}
