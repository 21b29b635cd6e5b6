"""Words of others in lines of ours: they can neither hide anything nor turn the rest of the line around."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

_BIDI_CONTROLS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_MARKS = (
    {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"}
    | {0x7F: "\u2421"}
    | {code: f"‹U+{code:04X}›" for code in (*range(0x80, 0xA0), *_BIDI_CONTROLS)}
)


@register.filter(is_safe=True)
def visible(text: object) -> str:
    """Control characters as marks that can be seen; tabs and line breaks stay."""
    return str(text).replace("\r\n", "\n").translate(_MARKS)


@register.filter
def isolated(text: object) -> SafeString:
    """As an element of its own, so that its direction of writing ends with it."""
    return format_html("<bdi>{}</bdi>", visible(text))
