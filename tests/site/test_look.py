import itertools
import re
from pathlib import Path

import pytest

STATIC = Path(__file__).resolve().parents[2] / "static"
TOKEN = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
TOKENS = {name: colours for name, *colours in TOKEN.findall((STATIC / "app.css").read_text())}
AA_TEXT = 4.5
AA_CONTROL = 3.0

TEXTS = ("text", "muted", "brand", "l2", "danger", "warn", "ok")
GROUNDS = ("ground", "surface", "sunken")


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_is_readable_on_every_ground(theme):
    pairs = [*itertools.product(TEXTS, GROUNDS), ("on-brand", "brand"), ("text", "mark")]
    for text, ground in pairs:
        assert contrast(TOKENS[text][theme], TOKENS[ground][theme]) >= AA_TEXT, (text, ground)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_the_edge_of_a_control_can_be_seen(theme):
    assert contrast(TOKENS["line-strong"][theme], TOKENS["surface"][theme]) >= AA_CONTROL


def test_every_token_that_is_used_exists():
    css = (STATIC / "app.css").read_text()
    assert set(re.findall(r"var\(--([\w-]+)\)", css)) <= set(re.findall(r"--([\w-]+):", css))


def test_nothing_is_loaded_from_elsewhere():
    for file in STATIC.iterdir():
        addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", file.read_text())
        assert [address for address in addresses if "www.w3.org" not in address] == [], file
