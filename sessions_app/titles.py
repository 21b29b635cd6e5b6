"""How a session is called."""

import re

from .card import one_line
from .logs.events import PREVIEW_CHARACTERS
from .machine_text import person_text
from .models import AgentSession

TITLE_CHARACTERS = 100
_TAG = re.compile(r"<([A-Za-z][\w-]{1,40})(?=[\s>])")


def session_title(session: AgentSession) -> str:
    """Its own title, else what was said first in it, else where it was."""
    for words in _candidates(session):
        if line := one_line(_of_a_person(words), TITLE_CHARACTERS):
            return line
    return session.cwd or session.session_id


def _candidates(session: AgentSession) -> list[str]:
    """A sub-agent may have inherited its parent's words: its own come first."""
    said = ["first_words", "plain_words", "told_words"]
    if session.relation == "subagent":
        said.insert(0, said.pop())
    return [session.title, *(getattr(session, name, None) or "" for name in said)]


def _of_a_person(words: str) -> str:
    """`words` without a harness's markup, which a preview may have cut through."""
    if len(words) >= PREVIEW_CHARACTERS - 1:
        # The markup is told by its closing tag: a tag that is open at the cut gets one.
        opened = next((tag for tag in reversed(_TAG.findall(words)) if f"</{tag}" not in words), "")
        if opened and words.startswith("<"):
            return person_text(f"{words}</{opened}>").removesuffix(f"</{opened}>")
    return person_text(words)
