"""Times, token counts and folders as people read them."""

from datetime import UTC, datetime

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from records.clock import now_ms

register = template.Library()

_UNITS = (("year", 31_536_000), ("month", 2_592_000), ("day", 86_400), ("hour", 3_600), ("minute", 60))


@register.filter
def tokens(count: int | None) -> str:
    if count is None:
        return "?"
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= size:
            amount = count / size
            return f"{amount:.1f}{unit}" if amount < 10 else f"{amount:.0f}{unit}"
    return str(count)


@register.filter
def moment(milliseconds: int | None) -> str:
    """A time in UTC to the minute."""
    try:
        return datetime.fromtimestamp((milliseconds or 0) / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "?"


@register.filter
def clock(milliseconds: int | None) -> str:
    return moment(milliseconds)[-5:] if milliseconds else ""


@register.filter
def age(milliseconds: int | None) -> SafeString | str:
    """How long ago, with the time itself on hover."""
    if not milliseconds:
        return ""
    seconds = (now_ms() - milliseconds) // 1000
    text = "just now"
    for unit, size in _UNITS:
        if seconds >= size:
            count = seconds // size
            text = f"{count} {unit}{'s' if count > 1 else ''} ago"
            break
    shown = moment(milliseconds)
    return format_html('<time datetime="{}Z" title="{} UTC">{}</time>', shown.replace(" ", "T"), shown, text)


@register.filter
def folder(path: str) -> str:
    """The last two names of a path: enough to recognise it in a list."""
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    return "/".join(parts[-2:]) or path
