"""Finds commands, files, failures and decisions in the pieces of a log. Pure.

Every function looks at one piece of text; how much of a log is shown to them is decided by `facts`.
"""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import orjson

from .path_words import looks_like_path

LINE_CHARACTERS = 160
# Arguments longer than this carry whole files; parsing them would cost more than the path in them is worth.
_MAX_ARGUMENT_CHARACTERS = 1_000_000

_COMMAND_KEYS = ("command", "cmd")
_NESTED_KEYS = ("action", "input", "arguments", "args")
_PATH_KEYS = frozenset(
    (
        "file_path",
        "path",
        "notebook_path",
        "filename",
        "file",
        "directory",
        "dir",
        "workdir",
        "paths",
        "files",
    )
)
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "fish", "pwsh", "powershell", "cmd"})
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (\S+)$", re.MULTILINE)


def call_arguments(text: str) -> dict[str, Any]:
    """The arguments of a tool call, with one level of nesting taken out; a bare text is `input`."""
    if not text.startswith("{") or len(text) > _MAX_ARGUMENT_CHARACTERS:
        return {"input": text}
    try:
        arguments: dict[str, Any] = orjson.loads(text)
    except ValueError:
        return {"input": text}
    nested = [value for key in _NESTED_KEYS if isinstance(value := arguments.get(key), dict)]
    for inner in nested:
        arguments.update(inner)
    return arguments


def call_commands(arguments: dict[str, Any]) -> list[str]:
    """The shell commands a tool call ran, whole."""
    found = [_command(arguments[key]) for key in _COMMAND_KEYS if key in arguments]
    return [command for command in found if command]


def _command(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        return ""
    shell = value[0].replace("\\", "/").rpartition("/")[2].removesuffix(".exe") if value else ""
    if len(value) > 2 and shell in _SHELLS:
        return str(value[-1]).strip()
    return shlex.join(value)


def call_paths(arguments: dict[str, Any]) -> Iterator[str]:
    """The files a tool call names as such, or patches."""
    for key, value in arguments.items():
        if key in _PATH_KEYS:
            for path in value if isinstance(value, list) else (value,):
                if isinstance(path, str) and looks_like_path(path):
                    yield path
        elif isinstance(value, str) and "*** Begin Patch" in value:
            yield from filter(looks_like_path, _PATCHED.findall(value))


def first_line(text: str) -> str:
    """The first line of `text` with something on it, cut to LINE_CHARACTERS."""
    line = text.lstrip()[: LINE_CHARACTERS * 4].partition("\n")[0]
    return " ".join(line.split())[:LINE_CHARACTERS].rstrip()


def command_line(command: str) -> str:
    """The first line of a command that is no comment."""
    lines = command.lstrip().split("\n", 20)
    return first_line(
        next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    )


_OUTPUT_STARTS = ("\nOutput:\n", "<tool_use_error>")
_EXIT_CODE = re.compile(r"\s*Exit code \d+\n")
_HEADER_REACH = 1_000


def excerpt(text: str, head: int, tail: int) -> str:
    """The two ends of `text`, without the words that the cut would leave in halves."""
    if len(text) <= head + tail:
        return text
    first = text[:head].rpartition("\n")[0] or text[:head].rpartition(" ")[0]
    last = text[-tail:].partition("\n")[2] or text[-tail:].partition(" ")[2]
    return f"{first}\n{last}"


def output_excerpt(text: str, head: int, tail: int) -> str:
    """The two ends of what a tool printed, without what a harness wrote before it: ids, the exit code."""
    return excerpt(text[_header_end(text[:_HEADER_REACH]) :].removesuffix("</tool_use_error>"), head, tail)


def _header_end(head: str) -> int:
    for mark in _OUTPUT_STARTS:
        if (at := head.find(mark)) >= 0:
            return at + len(mark)
    code = _EXIT_CODE.match(head)
    return code.end() if code and head[code.end() :].strip() else 0


def _lowered(text: str) -> str:
    """`text` in lower case, character for character."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text


# A line with one of the first four tells of a failure if it begins with it or goes on with a colon.
_ERROR_CUES = ("error", "exception", "fail", "fatal")
_PLAIN_CUES = ("denied", "not found", "no such file", "panic: ")
_REFUSED = "The user doesn't want to proceed"
_WIDE_CUES = ("错误", "失败")
_AFTER_CUE = re.compile(r"(?:ed|ure)?: \S|[:：]")
_LEADING = re.compile(
    # after a mark, a level in brackets, a time, or a place
    r"\s*(?:[✗×❌]\s*|E\s+|\[[^\]]{1,40}\]\s*|[\d:T.,Z/-]{8,30}\s+|[\w./\\-]{1,80}:[\d:]*(?:\s-)?\s*){0,3}"
    r"(?:[\w.]*(?:Error|Exception)|[Ee]rror|ERROR|[Ff]atal(?: error)?|FATAL|FAIL(?:ED)?|[Ff]ailed)"
    r"(?:\[\w+\]|\s\w{1,3}\d+)?(?::|\s+\S)"
)
# Source code that talks of errors, and listings with line numbers, are no failure of anything.
_CODE_LINE = re.compile(
    r"^\s*\d+\s*[→\t|:-]|^\S+[:-]\d+-|^[-+]{1,3}\s?\S|^\s*(?:[-*>|#]|//|/\*|\d+\.)\s"
    r"|\b(?:raise|except|throw|throws|catch|return|assert|import|def|func|if|class)\b.*(?:rror|xception)"
    r"|=>|:=|\w\(f?[\"'`]|\berr\b|`json:|[{;]\s*$"
)
_HITS_PER_CUE = 6


def _tells(cue: str, line: str, after: str) -> bool:
    if cue in _PLAIN_CUES:
        # Tools say who or what first; prose that mentions such a thing does not.
        return ": " in line and len(line) <= LINE_CHARACTERS
    return bool(_AFTER_CUE.match(after) or _LEADING.match(line))


def error_lines(text: str) -> list[str]:
    """The lines of `text` that report a failure, in order, each once."""
    found: dict[int, str] = {}
    lowered = _lowered(text)
    for cue in _ERROR_CUES + _PLAIN_CUES if text.isascii() else _ERROR_CUES + _PLAIN_CUES + _WIDE_CUES:
        at = lowered.find(cue)
        for _ in range(_HITS_PER_CUE):
            if at < 0:
                break
            start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            end = len(text) if end < 0 else end
            line = text[start : min(end, start + LINE_CHARACTERS * 2)]
            if _tells(cue, line, lowered[at + len(cue) : at + len(cue) + 8]) and not _CODE_LINE.search(line):
                found[start] = " ".join(line.split())[:LINE_CHARACTERS].rstrip()
            at = lowered.find(cue, end)
    return list(dict.fromkeys(found[start] for start in sorted(found)))


def failure_lines(text: str) -> list[str]:
    """As error_lines, for the output of a call that failed: at least its first line, unless a person
    refused the call."""
    if text.startswith(_REFUSED):
        return []
    return error_lines(text) or [line for line in (first_line(text),) if line]


_DECISION_CUES = (
    "decided", "decision:", "let's use", "let's keep", "we will use", "we'll use", "going with",
    "go with", "we should use", "must not", "must never", "settled on", "agreed", "switch to", "switched to",
    "stick with", "from now on", "chose ",
)  # fmt: skip
_WIDE_DECISION_CUES = (
    "决定", "采用", "改用", "改成", "必须", "禁止", "不再", "一律", "统一用", "约定", "就用", "选用", "以后都", "确定用",
)  # fmt: skip
# Wishes when a person says them, mere narration when a model does.
_PERSON_CUES = (
    "do not ", "don't ", "never ", "always ", "prefer ", "instead of", "rather than", "make sure", "must be",
    "no longer", "不要", "优先", "别用", "只用",
)  # fmt: skip
_SENTENCE_BREAKS = re.compile(r"[.!?](?=\s)|[\n。！？；]")
_SENTENCE_REACH = 300
_SHORTEST_DECISION = 6


def decision_sentences(text: str, *, by_person: bool) -> list[str]:
    """The sentences that settle something (English and Chinese), in order, each once."""
    lowered = _lowered(text)
    found: dict[int, str] = {}
    cues = _DECISION_CUES if text.isascii() else _DECISION_CUES + _WIDE_DECISION_CUES
    for cue in cues + _PERSON_CUES if by_person else cues:
        at = lowered.find(cue)
        for _ in range(_HITS_PER_CUE):
            if at < 0:
                break
            if not (cue[0].isascii() and at and lowered[at - 1].isalnum()):
                start, sentence = _sentence_around(text, at)
                if len(sentence) >= _SHORTEST_DECISION and not sentence.startswith("|"):
                    found[start] = sentence
            at = lowered.find(cue, at + len(cue))
    return list(dict.fromkeys(found[start] for start in sorted(found)))


def _sentence_around(text: str, at: int) -> tuple[int, str]:
    start = max(0, at - _SENTENCE_REACH)
    for mark in _SENTENCE_BREAKS.finditer(text, start, at):
        start = mark.end()
    end_mark = _SENTENCE_BREAKS.search(text, at, at + _SENTENCE_REACH)
    end = end_mark.end() if end_mark else min(len(text), at + _SENTENCE_REACH)
    return start, " ".join(text[start:end].strip(" \t\n-*>#").split())
