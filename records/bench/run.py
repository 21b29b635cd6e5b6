"""How fast the store is at a given size: each operation beside the bare one it is made of, in one run.

Data flow: a generated corpus -> the store, by the ordinary write path, and the same as bare files, rows and
index (writing) -> searched, opened, listed, grepped, each beside its bare operation (reading) -> ratios.
Ratios travel between machines; seconds don't.
"""

import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from records.files import StoreFull
from records.search.grep_rg import binary

from .clock import as_sizes
from .corpus import Corpus
from .reading import (
    QUESTIONS,
    catalog_bench,
    facets_bench,
    grep_bench,
    index_bytes,
    list_bench,
    open_bench,
    questions,
    search_bench,
)
from .writing import corpus_write

# Of the text: files, index, what merging takes, and the bare index and rows.
_SPACE = 4
_BYTES_PER_TOKEN = 4.2


class BenchError(Exception):
    """Something is missing that the bench needs."""


def bench_check(records: int, tokens: int, folder: Path) -> None:
    """BenchError, before anything is written; `folder`: where the store is to lie."""
    if binary() is None:
        raise BenchError("ripgrep is missing, which grep is compared with: pip install -r requirements.txt")
    needed = records * tokens * _BYTES_PER_TOKEN * _SPACE
    if shutil.disk_usage(folder).free < needed:
        raise BenchError(
            f"{folder}: this needs about {needed / 1e9:,.1f} GB of free disk (TMPDIR=… elsewhere)."
        )


# More operations on the same store, by name, for whoever knows what is above it: of the questions, as text.
More = Callable[[list[str]], dict[str, dict[str, Any]]]


def bench(
    records: int,
    tokens: int,
    folder: Path,
    *,
    more: More = lambda _: {},
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """The store of the running process is written to: give it a throw-away one. `folder`: a new one, for the
    bare side; `say` gets a line now and then. StoreFull, BenchError."""
    program = binary()
    if program is None:
        raise BenchError("ripgrep is missing.")
    try:
        written = corpus_write(records, tokens, folder, samples=QUESTIONS, say=say)
    except StoreFull as error:
        raise BenchError(str(error)) from error
    say("searching")
    asked = questions(Corpus(), written.sample)
    operations = {
        "bulk_write": written.write.as_totals(),
        "body_index": written.index.as_totals(),
        "search": search_bench(asked).as_percentiles(),
        "get": open_bench(records).as_percentiles(),
        "list": list_bench().as_percentiles(),
        "facets": facets_bench().as_percentiles(),
        "catalog": catalog_bench().as_percentiles(),
        "grep": grep_bench(written.sample, program).as_percentiles(),
        "index_size": as_sizes(index_bytes(), written.text_bytes),
        **more([question.text for question in asked]),
    }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "records": records,
        "tokens": tokens,
        "text_bytes": written.text_bytes,
        "peak_mb": round(peak, 1),
        "operations": operations,
    }
