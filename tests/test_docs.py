"""What can be set or run is documented, and what is documented exists."""

import importlib
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands

ROOT = Path(__file__).resolve().parent.parent
DOCS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
OUR_APPS = ("records", "sessions_app", "memex_site")
COMMANDS = {name: app for name, app in get_commands().items() if app in OUR_APPS}
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)")


def doc(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("option", settings.MEMEX_OPTIONS, ids=lambda option: option.name)
def test_every_setting_is_documented(option):
    row = re.search(rf"^\| `{option.variable}` \| `(.*?)` \| (.*?) \| (.*?) \|$", doc("settings.md"), re.M)
    assert row, f"docs/settings.md has no row for {option.variable}"
    default, allowed, meaning = row.groups()
    assert default == option.default
    assert allowed == option.allowed
    assert meaning.startswith(option.meaning)


def test_every_documented_setting_exists():
    documented = set(re.findall(r"^\| `(MEMEX_\w+)`", doc("settings.md"), re.M))
    assert documented == {option.variable for option in settings.MEMEX_OPTIONS}


def test_a_setting_has_its_value_in_the_settings():
    for option in settings.MEMEX_OPTIONS:
        name = "DEBUG" if option.name == "debug" else option.variable
        assert hasattr(settings, name), f"settings.py reads {option.variable} into another name"


def test_there_are_commands():
    assert {"serve", "signin_link"} <= COMMANDS.keys()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_documented_and_has_help(name):
    assert re.search(rf"^## `{name}`$", doc("commands.md"), re.M), (
        f"docs/commands.md has no section on {name}"
    )
    command = importlib.import_module(f"{COMMANDS[name]}.management.commands.{name}").Command
    assert len(command.help) > 20


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_the_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.M))
    assert {"run", "test"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M)


def test_the_changelog_says_what_is_not_released_yet():
    assert re.search(r"^## Unreleased$", (ROOT / "CHANGELOG.md").read_text(), re.M)
