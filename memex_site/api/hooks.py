"""The hooks of agents: their payload as it is, and what they take for an answer."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router

from memex_site.tokens import token_adopt
from sessions_app.access import require
from sessions_app.hooks.handle import hook_handle
from sessions_app.hooks.payload import BadPayload
from sessions_app.principals import WRITE, Principal

from . import outputs

router = Router(tags=["Hooks"], by_alias=True)
_OPEN_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"type": "object", "additionalProperties": True}}},
    },
    "responses": {
        200: {
            "description": "What the agent takes for the hook's output",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
        204: {"description": "Nothing to say"},
    },
}


@router.post(
    "{agent}/{event}",
    openapi_extra=_OPEN_BODY,
    response={204: None, 400: outputs.Refused},
    summary="A hook of Claude Code or Codex",
)
def hook(request: HttpRequest, agent: str, event: str) -> HttpResponse:
    principal: Principal = request.auth  # type: ignore[attr-defined]  # ninja puts it there
    require(principal, WRITE)
    given = _object(request.body)
    answer = hook_handle(token_adopt(principal, agent), agent, event, given)
    return (
        JsonResponse(answer, json_dumps_params={"ensure_ascii": False})
        if answer
        else HttpResponse(status=204)
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        # Lone surrogates and NUL may be in a prompt: nothing here needs it to be good text.
        given = json.loads(body.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        raise BadPayload("The body is no JSON.") from None
    if not isinstance(given, dict):
        raise BadPayload("The body must be a JSON object.")
    return given
