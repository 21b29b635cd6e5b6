"""Every error of the API: {"ok": false, "code", "message", "hint"?} with the status that belongs to it."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from django.core.exceptions import RequestDataTooBig
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from filelock import Timeout
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from records.capacity.compress import DigestRequiresModel
from records.capacity.pools import PoolBusy
from records.durable import is_busy
from records.files import StoreFull
from records.models import Record
from records.nav import BadPath
from records.search.grep_pattern import BadPattern
from records.services import Conflict, Unreadable
from records.trash import BundleError
from records.written import TextTooLarge
from sessions_app.access import Forbidden
from sessions_app.evicting import SurfaceChanged
from sessions_app.hooks.payload import BadPayload
from sessions_app.levels import LevelsOff, LevelSticky, SessionForgotten, SessionPaused
from sessions_app.locks import StoreBusy
from sessions_app.mirror import MirrorDamaged
from sessions_app.opening import SessionTaken, UnknownSession
from sessions_app.operations.changing import NotCold
from sessions_app.push import PushTooLarge
from sessions_app.pushlog import PushConflict
from sessions_app.queries import SessionNotFound

from .idempotency import KeyReused, StillWorking

logger = logging.getLogger(__name__)


class Problem(NamedTuple):
    status: int
    code: str
    hint: str = ""


INVALID_BODY = Problem(400, "MEMORY_INVALID_BODY")
INVALID_QUERY = Problem(400, "MEMORY_INVALID_QUERY")
UNAUTHENTICATED = Problem(
    401, "MEMORY_UNAUTHENTICATED", "Send `Authorization: Bearer mx_…`; `manage.py agent_token create NAME` makes one."
)  # fmt: skip
UNKNOWN_SESSION = Problem(404, "MEMORY_UNKNOWN_SESSION", "session.open makes a session known.")
NOT_FOUND = Problem(404, "MEMORY_NOT_FOUND", "memory.search and memory.index show what there is.")
BUSY = Problem(409, "MEMORY_BUSY", "Another process is at it: try again in a moment.")
TOO_LARGE = Problem(413, "MEMORY_TOO_LARGE")
INTERNAL = Problem(500, "MEMORY_INTERNAL", "The server's log says more.")

_PROBLEMS: dict[type[Exception], Problem] = {
    Forbidden: Problem(403, "MEMORY_FORBIDDEN"),
    UnknownSession: UNKNOWN_SESSION,
    SessionForgotten: UNKNOWN_SESSION,
    SessionNotFound: UNKNOWN_SESSION,
    SessionTaken: Problem(409, "MEMORY_CONFLICT"),
    Record.DoesNotExist: NOT_FOUND,
    Unreadable: NOT_FOUND,
    BundleError: NOT_FOUND,
    MirrorDamaged: Problem(404, "MEMORY_NOT_FOUND", "`manage.py doctor` looks at the whole store."),
    LevelsOff: Problem(400, "MEMORY_LEVELS_OFF", "Its owner switches levels on, in the pages or with `memory level`."),
    SessionPaused: Problem(400, "MEMORY_LEVELS_OFF", "Its owner resumes it, in the pages or with `memory pause --resume`."),
    PushConflict: Problem(409, "MEMORY_CONFLICT"),
    SurfaceChanged: Problem(409, "MEMORY_CONFLICT", "Plan again: the window is another one by now."),
    StoreBusy: BUSY,
    PushTooLarge: TOO_LARGE,
    LevelSticky: Problem(400, "MEMORY_LEVEL_STICKY"),
    Conflict: Problem(409, "MEMORY_CONFLICT", "Read it again, then decide."),
    Timeout: BUSY,
    PoolBusy: BUSY,
    StillWorking: BUSY,
    KeyReused: Problem(422, "MEMORY_IDEMPOTENCY_REUSED", "Take another key for another request."),
    NotCold: Problem(400, "MEMORY_NOT_COLD"),
    DigestRequiresModel: Problem(400, "MEMORY_DIGEST_REQUIRES_MODEL"),
    TextTooLarge: TOO_LARGE,
    StoreFull: Problem(507, "MEMORY_STORE_FULL", "Free disk space; nothing was lost."),
    RequestDataTooBig: TOO_LARGE,
    BadPattern: INVALID_QUERY,
    BadPath: INVALID_QUERY,
    BadPayload: INVALID_BODY,
    ValueError: INVALID_BODY,
}  # fmt: skip
# Where a field of its own has a code of its own.
_FIELD_CODES = {
    "id": "MEMORY_INVALID_ID",
    "status": "MEMORY_INVALID_STATUS",
    "keepTokens": "MEMORY_INVALID_QUOTA",
}
_SAY = {
    "extra_forbidden": "There is no field {field} here.",
    "missing": "{field} is missing.",
    "string_type": "{field} must be text.",
    "int_type": "{field} must be a whole number.",
    "int_parsing": "{field} must be a whole number.",
    "bool_type": "{field} must be true or false.",
    "bool_parsing": "{field} must be true or false.",
    "list_type": "{field} must be a list.",
    "dict_type": "{field} must be an object.",
    "model_attributes_type": "The body must be a JSON object.",
    "float_type": "{field} must be a number.",
    "float_parsing": "{field} must be a number.",
    "greater_than_equal": "{field} must be at least {ge}.",
    "less_than_equal": "{field} must be at most {le}.",
    "greater_than": "{field} must be more than {gt}.",
    "string_too_short": "{field} must not be empty.",
    "string_too_long": "{field} is longer than {max_length} characters.",
    "too_long": "{field} holds more than {max_length}.",
    "enum": "{field} must be one of {expected}.",
    "literal_error": "{field} must be one of {expected}.",
    "string_pattern_mismatch": "{field} doesn't have the form it must have.",
    "string_unicode": "{field} must be valid UTF-8 text.",
}


def problem_of(error: Exception) -> Problem | None:
    if isinstance(error, OperationalError):
        return BUSY if is_busy(error) else None
    for kind in type(error).__mro__:
        if kind in _PROBLEMS:
            return _PROBLEMS[kind]
    return None


def refusal(problem: Problem, message: str, headers: Mapping[str, str] | None = None) -> JsonResponse:
    body = {"ok": False, "code": problem.code, "message": message}
    if problem.hint:
        body["hint"] = problem.hint
    return JsonResponse(
        body, status=problem.status, headers=dict(headers or {}), json_dumps_params={"ensure_ascii": False}
    )


def message_of(error: Exception) -> str:
    """What the exception says, in words for whoever asked; never a library's."""
    if isinstance(error, Record.DoesNotExist):
        return "There is no such record that this session may see."
    if isinstance(error, OperationalError):
        return "The store is being written to by somebody else."
    if isinstance(error, Timeout):
        return "The store is being worked on by somebody else."
    if isinstance(error, RequestDataTooBig):
        return "The body is larger than what is taken."
    return str(error) or "This can't be done."


def handlers_add(api: NinjaAPI) -> None:
    def handle(kind: type[Exception]) -> Callable[[Any], Any]:
        return api.exception_handler(kind)

    @handle(AuthenticationError)
    def unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
        return refusal(
            UNAUTHENTICATED, "A token is needed, and this is none that works.", {"WWW-Authenticate": "Bearer"}
        )

    @handle(ValidationError)
    def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
        return _invalid(error.errors)

    @handle(Http404)
    def missing(request: HttpRequest, error: Http404) -> HttpResponse:
        return refusal(NOT_FOUND, "There is nothing at this address.")

    @handle(HttpError)
    def unparsed(request: HttpRequest, error: HttpError) -> HttpResponse:
        return refusal(INVALID_BODY, "The body is no JSON.")

    @handle(Exception)
    def failed(request: HttpRequest, error: Exception) -> HttpResponse:
        if problem := problem_of(error):
            if problem is INVALID_BODY and request.method == "GET":
                problem = INVALID_QUERY
            return refusal(problem, message_of(error))
        logger.exception("%s failed", request.path)
        return refusal(INTERNAL, "Something went wrong here.")


def _invalid(errors: list[dict[str, Any]]) -> HttpResponse:
    """The first of what is wrong, by name."""
    error = errors[0]
    where, *path = error["loc"]
    names = [str(part) for part in path]
    # Ninja puts the parameter's own name before that of a field in it.
    if len(names) > 1 and names[0] in ("body", "given", "query"):
        names = names[1:]
    field = ".".join(names) or "body"
    said = _SAY.get(error["type"])
    context = error.get("ctx") or {}
    message = said.format(field=field, **context) if said else f"{field} is not what it must be."
    code = _FIELD_CODES.get(field) if error["type"] != "extra_forbidden" else None
    base = INVALID_BODY if where == "body" else INVALID_QUERY
    return refusal(Problem(400, code or base.code), message)
