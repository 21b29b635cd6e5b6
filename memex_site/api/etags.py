"""ETags: the same answer is not sent twice."""

import hashlib
import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

# When an answer was made says nothing of what is in it.
_MADE_AT = re.compile(rb'"generatedAt": ?\d+,?')


def with_etag(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    def answering(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if request.method != "GET" or response.status_code != 200 or response.streaming:
            return response
        etag = f'"{hashlib.sha256(_MADE_AT.sub(b"", response.content)).hexdigest()[:32]}"'
        wanted = [
            part.strip().removeprefix("W/") for part in request.headers.get("If-None-Match", "").split(",")
        ]
        if etag in wanted:
            response = HttpResponse(status=304)
        response["ETag"] = etag
        # What an agent may see is nobody else's, and may change at any time.
        response["Cache-Control"] = "private, no-cache"
        patch_vary_headers(response, ("Authorization", "Cookie"))
        return response

    return answering
