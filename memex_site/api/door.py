"""Who is let in: an agent by its token, the owner by the browser's session."""

from django.http import HttpRequest
from ninja import Schema
from ninja.errors import AuthenticationError
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from memex_site.tokens import token_verify
from sessions_app.access import Access, Forbidden, access_of, require
from sessions_app.principals import OWNER_PRINCIPAL, Principal

from .inputs import NamesSession

_SAFE = ("GET", "HEAD", "OPTIONS")


class Door(AuthBase):
    """A bearer token counts before the cookie: an agent in the owner's browser is still an agent."""

    openapi_type = "http"
    openapi_scheme = "bearer"
    # The page to try the calls sends the owner's.
    csrf = True

    def __call__(self, request: HttpRequest) -> Principal:
        principal = principal_of(request)
        if principal is None:
            raise AuthenticationError
        return principal


def principal_of(request: HttpRequest) -> Principal | None:
    given = request.headers.get("Authorization")
    if given is not None:
        scheme, _, token = given.partition(" ")
        return token_verify(token.strip()) if scheme.lower() == "bearer" else None
    user = request.user
    if not (user.is_authenticated and user.is_superuser and user.is_active):
        return None
    if request.method not in _SAFE and check_csrf(request):
        raise Forbidden("The CSRF token is missing or wrong: reload the page.")
    return OWNER_PRINCIPAL


def enter(request: HttpRequest, right: str, named: NamesSession) -> Access:
    """What this request may see: by the session or folder that it names. Raises Forbidden, UnknownSession."""
    principal: Principal = request.auth  # type: ignore[attr-defined]  # ninja puts it there
    require(principal, right)
    refuse_unknown(request, named)
    return access_of(principal, session_id=named.session_id or "", cwd=named.cwd or "")


def refuse_unknown(request: HttpRequest, given: Schema) -> None:
    """Ninja passes over what an address says besides. Raises ValueError."""
    known = {field.alias or name for name, field in type(given).model_fields.items()}
    if unknown := sorted(set(request.GET) - (known if request.method == "GET" else set())):
        raise ValueError(f"There is no field {unknown[0][:60]} here.")
