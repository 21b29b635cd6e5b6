"""The program that looks for secrets: started by `detector`, and the only importer of the library.

A process of its own, since the library is written in Go: a fork of a process that has loaded it hangs, a call
can't be interrupted, and its memory is not ours to bound. Reads texts from stdin, each after its length (8
bytes), and answers with the length and JSON: [rule, secret, first line, first column, last line, last column],
lines and columns from 1, columns in bytes. Ends when stdin does.
"""

import json
import sys
from typing import Any, BinaryIO

SIZE = 8


def main(given: BinaryIO, answers: BinaryIO) -> None:
    from betterleaks import scan_string

    scan_string("")
    answers.write(b"\0")
    answers.flush()
    while len(head := given.read(SIZE)) == SIZE:
        text = given.read(int.from_bytes(head, "big")).decode()
        found: list[list[Any]] = []
        for finding in scan_string(text):
            _add(found, finding.raw)
        answer = json.dumps(found).encode()
        answers.write(len(answer).to_bytes(SIZE, "big") + answer)
        answers.flush()


def _add(found: list[list[Any]], raw: dict[str, Any]) -> None:
    """A find, and those that belong to it: a key's other half."""
    place = raw.get("location") or {}
    names = ("start_line", "start_column", "end_line", "end_column")
    value = (raw.get("match") or {}).get("value") or ""
    found.append([raw.get("rule_id") or "", value, *(place.get(name) or 0 for name in names)])
    for pair in raw.get("component_sets") or ():
        for part in pair.get("components") or ():
            _add(found, part)


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
