"""What is found, wherever it stands, and what happens when nothing can be found out."""

import os
import signal
import time

import pytest

from records.secrets import detector
from records.secrets.detector import OVERLAP, PIECE, scans, secrets_in
from records.secrets.policy import Find, clipped, merged, redacted

from .secret_texts import GITHUB, PEM, PLANTED


def found(text: str) -> list[str]:
    return [text[find.start : find.end] for find in secrets_in(text).finds]


@pytest.mark.parametrize(("name", "secret", "text", "expected"), PLANTED, ids=[each[0] for each in PLANTED])
def test_planted_secrets(name, secret, text, expected):
    """Those that are not found are a limit that docs/secrets.md states."""
    assert any(secret in each or each in secret for each in found(text)) is expected
    if expected:
        assert secret not in redacted(text, secrets_in(text).finds)


@pytest.mark.parametrize(
    "text",
    [
        "password = password",
        "return &transporthttp.BasicAuth{Username: username, Password: password}",
        'password = "helper-secret"',
        'url = "x?password=" + password + "\\n"',
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "id: 5d41402a-bc4b-4a76-b971-9d911017c592",
        "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        "请把密码放在环境变量里，不要写进代码",
    ],
)
def test_what_agents_write_all_day_is_no_secret(text):
    assert found(text) == []


@pytest.mark.parametrize(
    "at", [0, PIECE - OVERLAP - 20, PIECE - 20, PIECE - 1, PIECE, 2 * PIECE - OVERLAP - 5]
)
def test_nothing_is_missed_where_a_piece_ends(at):
    text = "半 x\n" * (at // 4) + " " * (at % 4) + f" {GITHUB} " + "y\n" * PIECE
    assert found(text) == [GITHUB]


def test_a_long_key_across_a_seam_is_one_find():
    text = "x\n" * ((PIECE - 100) // 2) + PEM + "\n" + "y\n" * OVERLAP
    (key,) = found(text)
    assert PEM.split("\n")[2] in key


def test_nul_and_half_characters_hide_nothing():
    assert found(f"a\0b {GITHUB}") == [GITHUB]
    assert found(f"\ud800 半 {GITHUB}") == [GITHUB]
    assert found(f"半\n\udfff x\n再 {GITHUB}\0") == [GITHUB]


def test_a_secret_is_found_wherever_it_is_repeated():
    text = f"token {GITHUB}\n" + "x" * 3 * PIECE + f"\nagain<{GITHUB}>"
    assert found(text) == [GITHUB, GITHUB]


def test_many_texts_at_once_keep_their_finds_apart():
    assert [[find.rule for find in scan.finds] for scan in scans([f"a {GITHUB}", "no", GITHUB[:20], GITHUB])] == [
        ["github-pat"], [], [], ["github-pat"],
    ]  # fmt: skip
    assert scans([]) == []


def test_a_limit_that_is_reached_is_said(monkeypatch):
    monkeypatch.setattr(detector, "MAX_CHARACTERS", 10)
    assert "10 characters" in secrets_in(f"x{' ' * 20}{GITHUB}").gave_up
    monkeypatch.setattr(detector, "MAX_CHARACTERS", 10**6)
    monkeypatch.setattr(detector, "MAX_SECONDS", 0.0)
    assert "time limit" in secrets_in("x").gave_up


def test_a_scanner_that_hangs_is_ended_and_started_anew(monkeypatch):
    secrets_in("x")
    os.kill(detector._scanner._process.pid, signal.SIGSTOP)
    monkeypatch.setattr(detector, "PIECE_SECONDS", 0.2)
    scan = secrets_in(GITHUB)
    assert scan.gave_up and GITHUB not in scan.gave_up
    monkeypatch.setattr(detector, "PIECE_SECONDS", 20.0)
    assert found(GITHUB) == [GITHUB]


def test_a_fork_has_a_scanner_of_its_own():
    assert found(GITHUB) == [GITHUB]
    child = os.fork()
    if child == 0:
        os._exit(0 if found(GITHUB) == [GITHUB] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert found(GITHUB) == [GITHUB]


def test_the_scanner_ends_with_whoever_started_it():
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        secrets_in("x")
        os.write(writer, str(detector._scanner._process.pid).encode())
        os._exit(0)
    os.waitpid(child, 0)
    pid = int(os.read(reader, 20))
    for _ in range(1_000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        with open(f"/proc/{pid}/stat") as stat:
            if stat.read().rsplit(") ")[-1].startswith("Z"):
                return
        time.sleep(0.01)
    pytest.fail("it goes on")


def test_without_the_library_nothing_is_found_and_that_is_said(monkeypatch, caplog):
    monkeypatch.setattr(detector, "find_spec", lambda _: None)
    monkeypatch.setattr(detector, "_said", False)
    assert found(GITHUB) == []
    assert "betterleaks" in caplog.text


def test_finds_that_overlap_are_one():
    assert merged([Find(5, 9, "b"), Find(0, 6, "a"), Find(20, 22, "c")]) == (
        Find(0, 9, "a"),
        Find(20, 22, "c"),
    )
    assert clipped([Find(0, 9, "a"), Find(20, 22, "c")], 5, 21) == [Find(0, 4, "a"), Find(15, 16, "c")]


def test_lines_stay_lines_when_a_find_covers_several():
    text = "a\nkey1\n\nkey2\nb"
    assert redacted(text, [Find(2, 12, "k")]) == "a\n«redacted:k»\n\n«redacted:k»\nb"
