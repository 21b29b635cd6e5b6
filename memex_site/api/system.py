"""What the store as a whole says of itself, and what nobody has."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from memex_site import VERSION
from sessions_app.access import require
from sessions_app.overview import store_status
from sessions_app.principals import READ

from . import outputs
from .door import principal_of

router = Router(tags=["System"], by_alias=True)


@router.get("status", auth=None, response=outputs.StatusAnswer, summary="Whether Memex is up")
def status(request: HttpRequest) -> dict[str, Any]:
    principal = principal_of(request)
    if principal is None:
        return {"version": VERSION}
    require(principal, READ)
    # Where the store lies and how much is in it is the owner's to know.
    return {"version": VERSION, "store": store_status() if principal.is_owner else None}
