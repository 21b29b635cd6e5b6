"""A grep pattern, said to two engines so that both mean the same. Pure.

The syntax is RE2's, which has nothing that needs backtracking; it works line by line, and `\\w`, `\\d`, `\\s`
and `\\b` know ASCII only. ripgrep takes another dialect (in it these know Unicode, and a bracket within
brackets is a set): so a pattern that RE2 accepts is written anew, for each engine.
"""

import re
from dataclasses import dataclass, field
from string import ascii_letters, digits
from typing import Any

import re2

PATTERN_CHARACTERS = 2_000

_PERL = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_CONTROLS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_REPETITION = re.compile(r"\{(?:0|[1-9]\d*)(?:,(?:0|[1-9]\d*)?)?\}")
_UNICODE_CLASS = re.compile(r"\\([pP])(?:\{(\^?)([^}]*)\}|(.))", re.DOTALL)
_NUMBER = re.compile(r"x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|([0-7]{1,3})")
_POSIX_CLASS = re.compile(r"\[:\^?[a-z]+:\]")
_GROUP = re.compile(r"\((?:\?(?:P?<\w+>|([imsU]*)(?:-([imsU]+))?([:)])))?")
_PLAIN = frozenset(ascii_letters + digits)


class BadPattern(ValueError):
    """The message says what to do instead."""


@dataclass(frozen=True)
class Pattern:
    # A compiled RE2 expression; it searches bytes, and no match of it holds a line end.
    re2: Any
    # The same for `rg -e`.
    ripgrep: str


def pattern_compile(text: str, *, ignore_case: bool = True, literal: bool = False) -> Pattern:
    """Raises BadPattern."""
    _refuse_odd(text)
    if literal:
        written = _Written([_character(ord(char)) for char in text])
    else:
        _compile(text)
        written = _Writer(text).written()
    flags = "(?im)" if ignore_case else "(?m)"
    compiled = _compile(flags + "".join(written.re2))
    if compiled.search(b"") is not None:
        raise BadPattern(
            f"{text!r} matches a line with nothing in it, and hence every line. Ask for at least one "
            "character: x+ rather than x*."
        )
    return Pattern(compiled, flags + "".join(written.ripgrep))


def _refuse_odd(text: str) -> None:
    if not text:
        raise BadPattern("The pattern is empty: say what to look for.")
    if len(text) > PATTERN_CHARACTERS:
        raise BadPattern(
            f"The pattern has {len(text):,} characters, and {PATTERN_CHARACTERS:,} are taken at most: look "
            "for a part of it."
        )
    if "\n" in text:
        raise BadPattern("A match stays within one line: look for one of the lines.")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise BadPattern("The pattern is no text: half of a character (a lone surrogate) is in it.")


def _compile(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    try:
        return re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args else ""
        raise BadPattern(
            f"No regular expression that can be searched for: {reason}. Lookaheads, lookbehinds and "
            "backreferences are not supported (RE2 syntax). As plain text, without a special meaning of "
            "any character, it is found as a literal (--literal)."
        ) from error


@dataclass
class _Written:
    """Pieces of the pattern for each engine."""

    re2: list[str] = field(default_factory=list)
    ripgrep: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.ripgrep = list(self.re2)

    def add(self, piece: str, ripgrep: str | None = None) -> None:
        self.re2.append(piece)
        self.ripgrep.append(piece if ripgrep is None else ripgrep)


def _character(code: int) -> str:
    """A literal, in a class as well as outside."""
    char = chr(code)
    return char if code > 0xA0 or char in _PLAIN else rf"\x{{{code:x}}}"


class _Writer:
    """Reads a pattern that RE2 has accepted, as RE2 reads it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._out = _Written()

    def written(self) -> _Written:
        while self._at < len(self._text):
            match self._text[self._at]:
                case "\\":
                    self._escape()
                case "[":
                    self._bracket()
                case "(":
                    self._group()
                case "{":
                    self._repetition()
                case "$":
                    # Also before the CR of a line that ends with CRLF.
                    self._take(1)
                    self._out.add(r"(?:\r?$)")
                case char if char in ").*+?|^":
                    self._out.add(self._take(1))
                case _:
                    self._out.add(_character(ord(self._take(1))))
        return self._out

    def _take(self, count: int) -> str:
        taken = self._text[self._at : self._at + count]
        self._at += count
        return taken

    def _escape(self) -> None:
        name = self._text[self._at + 1]
        if name == "Q":
            self._quoted()
        elif name in "pP":
            self._out.add(self._unicode_class())
        elif name.lower() in _PERL:
            self._take(2)
            self._out.add(f"[{'^' if name.isupper() else ''}{_PERL[name.lower()]}]")
        elif name in "bB":
            self._take(2)
            self._out.add(f"\\{name}", rf"(?-u:\{name})")
        elif name in "Az":
            # Begin and end of the text: here a line is one.
            self._take(2)
            self._out.add("^" if name == "A" else r"(?:\r?$)")
        elif name == "C":
            raise BadPattern(r"\C (a single byte) is not supported: . stands for any character.")
        else:
            code = self._escaped_code()
            if code == _CONTROLS["n"]:
                raise BadPattern(r"A match stays within one line: leave \n out.")
            self._out.add(_character(code))

    def _quoted(self) -> None:
        quoted, _, _ = self._text[self._at + 2 :].partition(r"\E")
        self._at = min(len(self._text), self._at + len(quoted) + 4)
        for char in quoted:
            self._out.add(_character(ord(char)))

    def _unicode_class(self) -> str:
        match = _UNICODE_CLASS.match(self._text, self._at)
        assert match
        self._at = match.end()
        kind, negation, name, letter = match.groups()
        if negation:
            kind = "p" if kind == "P" else "P"
        return rf"\{kind}{{{name or letter}}}"

    def _escaped_code(self) -> int:
        """Of `\\n`, `\\x41`, `\\x{4e00}`, `\\101`, `\\.`."""
        if number := _NUMBER.match(self._text, self._at + 1):
            braced, two, octal = number.groups()
            self._at = number.end()
            return int(octal, 8) if octal else int(braced or two, 16)
        char = self._take(2)[1]
        return _CONTROLS.get(char, ord(char))

    def _group(self) -> None:
        match = _GROUP.match(self._text, self._at)
        assert match
        self._at = match.end()
        on, off, end = match.groups(default="")
        # Only these two matter line by line. ripgrep would take m and s for leave to look beyond the line.
        on, off = ("".join(flag for flag in flags if flag in "iU") for flags in (on, off))
        flags = f"{on}-{off}" if off else on
        if end == ")":
            self._out.add(f"(?{flags})" if flags else "")
        else:
            self._out.add(f"(?{flags}:")

    def _repetition(self) -> None:
        match = _REPETITION.match(self._text, self._at)
        self._out.add(self._take(len(match[0])) if match else _character(ord(self._take(1))))

    def _bracket(self) -> None:
        self._take(1)
        self._out.add("[")
        if self._text[self._at] == "^":
            # A line end is in none.
            self._take(1)
            self._out.add(r"^\n")
        is_first = True
        while is_first or self._text[self._at] != "]":
            is_first = False
            self._bracket_item()
        self._take(1)
        self._out.add("]")

    def _bracket_item(self) -> None:
        if posix := _POSIX_CLASS.match(self._text, self._at):
            self._out.add(self._take(len(posix[0])))
            return
        if self._text[self._at] == "\\":
            name = self._text[self._at + 1]
            if name in "pP":
                self._out.add(self._unicode_class())
                return
            if name.lower() in _PERL:
                self._take(2)
                inner = _PERL[name.lower()]
                if name.isupper():
                    self._out.add(f"\\{name}", f"[^{inner}]")
                else:
                    self._out.add(inner)
                return
        first = _character(self._bracket_code())
        if self._text[self._at] == "-" and self._text[self._at + 1] != "]":
            self._take(1)
            first += f"-{_character(self._bracket_code())}"
        self._out.add(first)

    def _bracket_code(self) -> int:
        return self._escaped_code() if self._text[self._at] == "\\" else ord(self._take(1))
