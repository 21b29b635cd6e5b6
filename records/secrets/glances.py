"""The beginnings of texts that an index shows in lists, under the policy `redact`."""

from collections.abc import Sequence

from django.conf import settings

from . import detector
from .dismissed import dismissed, fingerprint
from .policy import REDACT, redacted

# Where such a beginning may have been cut: within a secret, which then isn't known for one.
_CUT_FROM = 150
_KEY = "PRIVATE KEY"


def glances(texts: Sequence[str]) -> list[str]:
    """Without secrets, and without a last word or key that may be the beginning of one; as they are under any
    other policy."""
    if settings.MEMEX_SENSITIVE_POLICY != REDACT or not any(texts):
        return list(texts)
    known = dismissed()
    found: list[str] = []
    for text, scan in zip(texts, detector.scans(texts), strict=True):
        if scan.gave_up:
            found.append("")
            continue
        finds = [find for find in scan.finds if fingerprint(text[find.start : find.end]) not in known]
        found.append(_whole(redacted(text, finds), was_cut=len(text) >= _CUT_FROM))
    return found


def _whole(text: str, *, was_cut: bool) -> str:
    if was_cut:
        head, space, _ = text.rstrip("… ").rpartition(" ")
        text = f"{head}{space}…"
    before, key, _ = text.partition(_KEY)
    return f"{before}{key} …" if key else text
