from typing import Any

from django import template
from django.template.context import RequestContext

from sessions_app.samples import samples_present

register = template.Library()


@register.inclusion_tag("sessions/_samples_banner.html", takes_context=True)
def samples_banner(context: RequestContext) -> dict[str, Any]:
    """Says on every page that what is shown was made up, as long as it is there."""
    return {"present": samples_present(), "csrf_token": context.get("csrf_token")}
