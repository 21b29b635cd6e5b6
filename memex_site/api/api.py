"""The API put together: its routes, who is let in, its document, its errors."""

from typing import Any

from csp.constants import SELF
from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver
from ninja import NinjaAPI, Swagger

from memex_site import VERSION

from . import changing, hooks, reading, sessions, system
from .door import Door
from .errors import NOT_FOUND, Problem, handlers_add, refusal
from .etags import with_etag

_DESCRIPTION = (
    "What agents ask Memex for. Send `Authorization: Bearer mx_…`; the owner's browser session works as well. "
    "Answers hold `ok`; an error has `code`, `message` and often `hint`."
)

api = NinjaAPI(
    title="Memex",
    version=VERSION,
    description=_DESCRIPTION,
    auth=Door(),
    docs=Swagger(settings={"persistAuthorization": False, "tryItOutEnabled": True}),
    docs_url="docs",
    openapi_url="openapi.json",
    urls_namespace="api",
)
for router in (reading.router, changing.router, sessions.router, system.router):
    api.add_router("", router)
handlers_add(api)

hooks_api = NinjaAPI(
    title="Memex hooks",
    version=VERSION,
    auth=Door(),
    docs_url=None,
    openapi_url="openapi.json",
    urls_namespace="hooks",
)
hooks_api.add_router("", hooks.router)
handlers_add(hooks_api)


def not_found(request: HttpRequest, rest: str = "") -> HttpResponse:
    return refusal(NOT_FOUND, f"There is no {request.path}. /api/docs lists what there is.")


def open_to_agents(patterns: tuple[list[Any], str, str]) -> tuple[list[Any], str, str]:
    """Views that ask who is there by themselves: nobody is sent to a sign-in page from here. The page to try
    the calls stays the owner's."""
    for pattern in _flat(patterns[0]):
        if pattern.name == "openapi-view":
            # Its styles hold their icons.
            pattern.callback = csp_update({"img-src": [SELF, "data:"]})(pattern.callback)
        else:
            pattern.callback = _without_login(pattern.callback)
    return patterns


def _flat(patterns: list[URLPattern | URLResolver]) -> list[URLPattern]:
    found: list[URLPattern] = []
    for pattern in patterns:
        found += [pattern] if isinstance(pattern, URLPattern) else _flat(pattern.url_patterns)
    return found


def _without_login(view: Any) -> Any:
    answering = with_etag(view)

    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = answering(request, *args, **kwargs)
        if response.status_code == 405 and not response.headers.get("Content-Type", "").startswith(
            "application/json"
        ):
            allowed = response.headers.get("Allow", "")
            return refusal(
                Problem(405, "MEMORY_METHOD_NOT_ALLOWED"),
                f"{request.method} isn't taken here.",
                {"Allow": allowed},
            )
        return response

    checked.login_required = False  # type: ignore[attr-defined]
    checked.csrf_exempt = True  # type: ignore[attr-defined]  # the door asks for it where a cookie is shown
    return checked
