"""What a person types about a record."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from .fields import SUMMARY_MAX, TITLE_MAX, USE_WHEN_MAX
from .models import Kind, Record, Status
from .services import SETTABLE
from .written import KINDS, SLOT_MAX, TEXT_MAX_BYTES

_TAGS_HELP = "Separated by commas; with a name of their own: “area: parser, area: lexer”."
_SMALL = {"rows": 2}
DEFAULT_TAG = "topic"


class TagsField(forms.CharField):
    """Lists by name. What has no name is a topic."""

    def to_python(self, value: Any) -> Any:
        found: dict[str, list[str]] = {}
        for part in str(value or "").replace("\n", ",").split(","):
            name, colon, rest = part.partition(":")
            tag, name = (rest.strip(), name.strip()) if colon else (name.strip(), DEFAULT_TAG)
            if tag and name and tag not in found.setdefault(name, []):
                found[name].append(tag)
        return {name: tags for name, tags in found.items() if tags}

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return ", ".join(
            tag if name == DEFAULT_TAG and ":" not in tag else f"{name}: {tag}"
            for name, tags in value.items()
            if isinstance(tags, Sequence)
            for tag in tags
        )


class CardForm(forms.Form):
    """`content_hash`: of the file that was shown; an edit of another one is refused."""

    title = forms.CharField(max_length=TITLE_MAX)
    use_when = forms.CharField(
        max_length=USE_WHEN_MAX, required=False, label="Read it when", widget=forms.Textarea(_SMALL)
    )
    summary = forms.CharField(max_length=SUMMARY_MAX, required=False, widget=forms.Textarea({"rows": 4}))
    tags = TagsField(required=False, help_text=_TAGS_HELP)
    status = forms.ChoiceField()
    content_hash = forms.CharField(widget=forms.HiddenInput, max_length=64)

    def __init__(self, data: Mapping[str, Any] | None = None, *, record: Record) -> None:
        given = {name: getattr(record, name) for name in ("title", "use_when", "summary", "tags", "status")}
        super().__init__(data, initial={**given, "content_hash": record.content_hash})
        # What waits or contradicts is decided, not edited.
        choices = [status for status in Status.choices if status[0] in {*SETTABLE, record.status}]
        self.fields["status"] = forms.ChoiceField(choices=choices, initial=record.status)


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
    tags = TagsField(required=False, help_text=_TAGS_HELP)
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
