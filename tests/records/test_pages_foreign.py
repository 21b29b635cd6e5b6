"""What others wrote can neither hide anything on a page nor turn our own words around."""

import re

import pytest
from django.contrib.auth.models import User
from django.utils.safestring import mark_safe
from hypothesis import given
from hypothesis import strategies as st

from records.templatetags.foreign import isolated, visible

from .drafts import write
from .test_pages import LOST, provenance

OVERRIDE, ISOLATE, ESCAPE = "\u202e", "\u2066", "\x1b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb", "a‹U+202E›b"),
        ("a\u2069b", "a‹U+2069›b"),
        ("a\x1b[31m\x00\x7f\x85", "a␛[31m␀␡‹U+0085›"),
        ("one\r\n\ttwo\n", "one\n\ttwo\n"),
        ("שלום עולם", "שלום עולם"),
    ],
)
def test_control_characters_can_be_seen(text, shown):
    assert visible(text) == shown


@given(st.text())
def test_nothing_that_turns_or_hides_is_left(text):
    left = set(visible(text)) & {
        *map(chr, range(0x20)),
        *map(chr, range(0x7F, 0xA0)),
        *"\u202a\u202e\u2066\u2069",
    }
    assert left <= {"\t", "\n"}


def test_markup_stays_text_and_ours_stays_markup():
    assert isolated("<b>\u202e") == "<bdi>&lt;b&gt;‹U+202E›</bdi>"
    assert visible(mark_safe("<b>x</b>")) == "<b>x</b>"


@pytest.mark.django_db(transaction=True)
def test_the_pages_of_a_record_show_them(client, memex_home):
    client.force_login(User.objects.create_superuser("owner"))
    hidden = f"a{OVERRIDE}{ISOLATE}{ESCAPE}z"
    lost = LOST | {"commands": [f"rm {hidden}"], "lost": LOST["lost"] | {"commands": 1}}
    record_id = write(
        "c1",
        title=f"T {hidden}",
        use_when=f"U {hidden}",
        workspace=f"/w/{hidden}",
        tags={"where": [f"W {hidden}"]},
        provenance=provenance(lost=lost, agent=f"A {hidden}"),
        body=f"B {hidden}\n",
    )
    client.post("/records/act", {"action": "pin", "id": record_id})  # its message names the record
    for address in ("/", f"/records/{record_id}/", f"/records/forget?id={record_id}", "/trash/"):
        text = re.sub(r' value="[^"]*"', "", client.get(address).text)  # what a filter sends is not shown
        assert not {OVERRIDE, ISOLATE, ESCAPE} & set(text), address
    text = client.get(f"/records/{record_id}/").text
    for piece in ("T", "U", "W", "B", "rm"):
        assert f"{piece} a‹U+202E›‹U+2066›␛z" in text, piece
