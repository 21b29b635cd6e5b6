import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import URLPattern, get_resolver

from memex_site import signin

ROOT = Path(__file__).resolve().parents[2]
# What answers without a sign-in, and why that is harmless.
OPEN = {
    "signin/": "the way in",
    "signin/<str:token>": "the way in",
    "admin/login/": "leads to the way in",
    "favicon.ico": "a picture",
    "api/status": "says that Memex is up, and which version; more to the owner alone",
    "api/openapi.json": "says what there is to ask, nothing of what is kept",
    "hooks/openapi.json": "the same",
}


def routes(patterns, prefix=""):
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield route
        else:
            yield from routes(pattern.url_patterns, route)


def example(route):
    """A path that `route` matches: any number or word will do for its parameters."""
    path = re.sub(r"<int:\w+>", "1", route)
    path = re.sub(r"\(\?P<\w+>.*?\)\$?$", "auth/", path)
    return "/" + re.sub(r"<[\w:]+>", "x", path).removesuffix("$").replace("^", "")


@pytest.mark.django_db
def test_every_address_needs_a_signin(client):
    checked = [route for route in routes(get_resolver().url_patterns) if route not in OPEN]
    assert len(checked) > 10
    for route in checked:
        response = client.get(example(route))
        to_signin = response.status_code == 302 and response.url.startswith(("/signin/", "/admin/login/"))
        # The API has no GET at some addresses, and says nothing else of them either.
        says_nothing = response.status_code in (401, 403, 404, 405) and route.startswith(("api/", "hooks/"))
        assert to_signin or says_nothing, f"{route}: {response.status_code}"


@pytest.mark.django_db
def test_the_open_addresses_exist(client):
    assert OPEN.keys() <= set(routes(get_resolver().url_patterns))
    assert client.get("/favicon.ico").url == "/static/favicon.svg"


@pytest.mark.django_db
def test_headers_of_a_page(client):
    client.force_login(User.objects.create_superuser("owner"))
    response = client.get("/")
    policy = response["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"


@pytest.mark.django_db
def test_cookies(client):
    link = signin.link_create()
    client.get(link.path)
    client.post("/signin/", {"token": link.path.removeprefix("/signin/")})
    for name in ("memex_session", "memex_csrf"):
        cookie = client.cookies[name]
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8420", 200),
        ("localhost:9", 200),
        ("[::1]:8420", 200),
        ("memex.example", 400),
        ("127.0.0.1.example", 400),
    ],
)
def test_only_names_of_this_machine_are_answered(host, status):
    assert Client().get("/signin/", headers={"host": host}).status_code == status


@pytest.mark.django_db
def test_pages_for_what_goes_wrong(client):
    client.force_login(User.objects.create_superuser("owner"))
    assert "nothing at this address" in client.get("/nowhere").text
    strict = Client(enforce_csrf_checks=True)
    assert "out of date" in strict.post("/signin/").text


def test_the_error_page_needs_no_database(rf):
    from django.views.defaults import server_error

    response = server_error(rf.get("/"))
    assert response.status_code == 500
    assert "What was stored is safe" in response.text


@pytest.mark.parametrize(
    "inline",
    [r"<script(?![^>]*\bsrc=)", r"<style", r"\sstyle=", r"\son[a-z]+=", r"hx-on", r"javascript:", r"js:"],
)
def test_no_template_needs_what_the_policy_forbids(inline):
    templates = list((ROOT / "templates").rglob("*.html"))
    assert templates
    for template in templates:
        assert not re.search(inline, template.read_text()), template


@pytest.mark.django_db(transaction=True)
def test_the_database_is_opened_as_it_must_be():
    with connection.cursor() as cursor:
        pragmas = {}
        for name in ("busy_timeout", "synchronous", "foreign_keys"):
            cursor.execute(f"PRAGMA {name}")
            pragmas[name] = cursor.fetchone()[0]
    assert pragmas == {"busy_timeout": 20_000, "synchronous": 1, "foreign_keys": 1}
    assert connection.transaction_mode == "IMMEDIATE"
