"""What a person types about a record."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from .fields import SUMMARY_MAX, TITLE_MAX, USE_WHEN_MAX
from .models import Kind, Record, Status
from .secrets.gathering import Gatherer
from .secrets.policy import SENSITIVE
from .services import SETTABLE
from .written import KINDS, SLOT_MAX, TEXT_MAX_BYTES

_TAGS_HELP = "One a line; with a name of their own: “area: parser”."
_SMALL, _LINES = {"rows": 2}, {"rows": 5}
DEFAULT_TAG = "topic"
Tags = dict[str, list[str]]


class TagsField(forms.CharField):
    """Lists by name, a line each; what has no name is a topic. Tags may hold anything, commands of several
    lines too: those whose line was not touched (`kept`) stay what they are."""

    widget = forms.Textarea

    def __init__(self, *, kept: Mapping[str, Sequence[str]] | None = None) -> None:
        super().__init__(required=False, help_text=_TAGS_HELP, widget=forms.Textarea(_LINES))
        self._kept = {_line(name, tag): (name, tag) for name, tags in (kept or {}).items() for tag in tags}
        self.initial = "\n".join(self._kept)

    def to_python(self, value: Any) -> Any:
        found: Tags = {}
        for line in str(value or "").splitlines():
            name, tag = self._kept.get(_words(line)) or _parsed(line)
            if tag and tag not in found.setdefault(name, []):
                found[name].append(tag)
        return {name: tags for name, tags in found.items() if tags}


def _line(name: str, tag: str) -> str:
    return _words(tag if name == DEFAULT_TAG and ":" not in tag else f"{name}: {tag}")


def _words(line: str) -> str:
    return " ".join(line.split())


def _parsed(line: str) -> tuple[str, str]:
    name, colon, tag = line.partition(":")
    return (name.strip(), tag.strip()) if colon and name.strip() else (DEFAULT_TAG, line.strip(" :"))


# What of a record is edited.
CARD_FIELDS = ("title", "use_when", "summary", "tags", "status")


class CardForm(forms.Form):
    """`content_hash`: of the file that was shown; an edit of another one is refused."""

    title = forms.CharField(max_length=TITLE_MAX)
    use_when = forms.CharField(
        max_length=USE_WHEN_MAX, required=False, label="Read it when", widget=forms.Textarea(_SMALL)
    )
    summary = forms.CharField(max_length=SUMMARY_MAX, required=False, widget=forms.Textarea({"rows": 4}))
    tags = TagsField()
    status = forms.ChoiceField()
    content_hash = forms.CharField(widget=forms.HiddenInput, max_length=64)

    def __init__(self, data: Mapping[str, Any] | None = None, *, record: Record) -> None:
        self._record = record
        given = {name: getattr(record, name) for name in ("title", "use_when", "summary", "status")}
        super().__init__(data, initial={**given, "content_hash": record.content_hash})
        own = {name: tags for name, tags in record.tags.items() if name != SENSITIVE}
        self.fields["tags"] = TagsField(kept=own)
        # What waits or contradicts is decided, not edited.
        choices = [status for status in Status.choices if status[0] in {*SETTABLE, record.status}]
        self.fields["status"] = forms.ChoiceField(choices=choices, initial=record.status)

    @property
    def changes(self) -> dict[str, Any]:
        """Of a valid form: the fields of the record that it would change."""
        given = {name: self.cleaned_data[name] for name in CARD_FIELDS}
        if SENSITIVE in self._record.tags:
            # Set by what was found, and taken away where that is decided.
            given["tags"] = {**given["tags"], SENSITIVE: self._record.tags[SENSITIVE]}
        return {name: value for name, value in given.items() if value != getattr(self._record, name)}

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            for name, value in self.changes.items():
                secrets = Gatherer()
                secrets.card({name: value})
                if rules := secrets.decision.rules:
                    said = f"This looks like a secret ({', '.join(rules)}), and a card is seen by more than its record."
                    self.add_error(name, f"{said} Leave it out.")
        return cleaned


class MemoryForm(forms.Form):
    """`where`: a choice of the caller's."""

    text = forms.CharField(
        widget=forms.Textarea({"rows": 8, "autofocus": True}),
        max_length=TEXT_MAX_BYTES,
        label="What is to be remembered",
        help_text="Markdown. Its first line becomes the title, unless you give one.",
    )
    kind = forms.ChoiceField(choices=[each for each in Kind.choices if each[0] in KINDS], initial=Kind.NOTE)
    where = forms.ChoiceField(label="Where it belongs")
    title = forms.CharField(max_length=TITLE_MAX, required=False)
    use_when = forms.CharField(
        max_length=USE_WHEN_MAX,
        required=False,
        label="Read it when",
        help_text="When an agent should open it: “Read when the parser is changed.”",
    )
    tags = TagsField()
    slot = forms.CharField(
        max_length=SLOT_MAX,
        required=False,
        label="About",
        help_text="What it makes a claim about, such as “package manager”: another claim about the same is shown "
        "as a contradiction.",
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        places: Sequence[Any],
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=dict(initial or {}))
        self.fields["where"] = forms.ChoiceField(label="Where it belongs", choices=list(places))
