import json
import logging
import re

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client

from memex_site import signin
from memex_site.logs import HideSigninTokens
from memex_site.models import SigninLink

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_failures_yet():
    cache.clear()


def token_of(link):
    return link.path.removeprefix("/signin/")


def redeem(client, token, **extra):
    return client.post("/signin/", {"token": token}, **extra)


def signed_in(client):
    return client.get("/").status_code == 200


def test_a_link_signs_in_once(client):
    token = token_of(signin.link_create())
    assert not signed_in(client)
    assert redeem(client, token).url == "/"
    assert signed_in(client)
    second = Client()
    assert redeem(second, token).status_code == 403
    assert not signed_in(second)


def test_opening_a_link_changes_nothing(client):
    link = signin.link_create()
    for _ in range(3):
        response = client.get(link.path)
        assert response.status_code == 200
        assert f'value="{token_of(link)}"' in response.text
    assert not signed_in(client)
    assert redeem(client, token_of(link)).status_code == 302


def test_a_link_ends_after_fifteen_minutes(client, monkeypatch):
    monkeypatch.setattr(signin, "now_ms", lambda: 0)
    first, second = signin.link_create(), signin.link_create()
    assert first.expires_at == 15 * 60 * 1000
    monkeypatch.setattr(signin, "now_ms", lambda: first.expires_at - 1)
    assert redeem(Client(), token_of(first)).status_code == 302
    monkeypatch.setattr(signin, "now_ms", lambda: second.expires_at)
    assert redeem(client, token_of(second)).status_code == 403


def test_ended_links_are_cleared_away(monkeypatch):
    old = signin.link_create()
    monkeypatch.setattr(signin, "now_ms", lambda: old.expires_at + 1)
    signin.link_create()
    assert SigninLink.objects.count() == 1


def test_the_token_is_stored_as_a_hash_only():
    token = token_of(signin.link_create())
    row = SigninLink.objects.get()
    assert len(row.token_hash) == 64
    assert token not in (row.token_hash, str(row))
    assert not signin.link_redeem(row.token_hash)


@pytest.mark.parametrize("token", ["", "x", "\ud800", "é" * 500])
def test_a_wrong_token_is_refused(token):
    signin.link_create()
    assert not signin.link_redeem(token)
    assert SigninLink.objects.count() == 1


def test_wrong_tokens_are_throttled(client):
    token = token_of(signin.link_create())
    for _ in range(signin.FAILURES_ALLOWED):
        assert redeem(client, "wrong").status_code == 403
    assert redeem(client, "wrong").status_code == 429
    assert redeem(client, token).status_code == 429
    cache.clear()
    assert redeem(client, token).status_code == 302


@pytest.mark.parametrize("address", ["192.168.1.7", "10.0.0.1", "2001:db8::1", ""])
def test_only_this_machine_may_sign_in(client, address):
    link = signin.link_create()
    assert client.get(link.path, REMOTE_ADDR=address).status_code == 403
    assert client.get("/signin/", REMOTE_ADDR=address).status_code == 403
    assert redeem(client, token_of(link), REMOTE_ADDR=address).status_code == 403
    assert redeem(client, token_of(link), REMOTE_ADDR="127.0.0.1").status_code == 302


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1"])
def test_every_address_of_this_machine_will_do(client, address):
    assert client.get("/signin/", REMOTE_ADDR=address).status_code == 200


def test_the_owner_is_made_once_and_has_no_password(client):
    redeem(client, token_of(signin.link_create()))
    redeem(Client(), token_of(signin.link_create()))
    owner = User.objects.get()
    assert owner.is_superuser
    assert owner.is_staff
    assert not owner.has_usable_password()


def test_an_existing_superuser_is_the_owner():
    existing = User.objects.create_superuser("someone")
    assert signin.owner() == existing


@pytest.mark.parametrize("right", ["is_active", "is_staff", "is_superuser"])
def test_an_owner_who_lost_a_right_gets_it_back(client, right):
    redeem(Client(), token_of(signin.link_create()))
    User.objects.update(**{right: False})
    assert redeem(client, token_of(signin.link_create())).status_code == 302
    assert client.get("/admin/").status_code == 200
    assert User.objects.filter(is_active=True, is_staff=True, is_superuser=True).count() == 1
    assert User.objects.count() == 1


def test_the_owner_is_found_by_name():
    User.objects.create_superuser("someone")
    named = User.objects.create_user("owner")
    assert signin.owner() == named
    named.refresh_from_db()
    assert named.is_superuser


def test_a_link_that_is_used_up_says_so_when_it_is_opened(client, monkeypatch):
    used, late = signin.link_create(), signin.link_create()
    redeem(Client(), token_of(used))
    monkeypatch.setattr(signin, "now_ms", lambda: late.expires_at)
    for path in (used.path, late.path, "/signin/garbage"):
        answer = client.get(path)
        assert answer.status_code == 403
        assert "used already or is older" in answer.text
        assert 'name="token"' not in answer.text


def test_another_machine_learns_nothing_of_a_link(client):
    answers = {
        client.get(path, REMOTE_ADDR="10.0.0.1").content for path in (signin.link_create().path, "/signin/x")
    }
    assert len(answers) == 1


def test_signing_in_leads_to_the_page_that_was_asked_for(client):
    assert client.get("/health/").url == "/signin/?next=/health/"
    client.get("/signin/?next=/health/")
    assert redeem(client, token_of(signin.link_create())).url == "/health/"
    assert client.get("/signin/?next=/trash/").url == "/trash/"


@pytest.mark.parametrize(
    "wanted", ["https://example.org/", "//example.org", "home", "javascript:alert(1)", "/\\x.org"]
)
def test_signing_in_leads_nowhere_else(client, wanted):
    client.get("/signin/", {"next": wanted})
    assert redeem(client, token_of(signin.link_create())).url == "/"
    assert client.get("/signin/", {"next": wanted}).url == "/"


def test_the_form_needs_its_csrf_token():
    strict = Client(enforce_csrf_checks=True)
    link = signin.link_create()
    assert redeem(strict, token_of(link)).status_code == 403
    page = strict.get(link.path).text
    csrf = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[1]
    form = {"token": token_of(link), "csrfmiddlewaretoken": csrf}
    foreign = strict.post("/signin/", form, HTTP_ORIGIN="http://127.0.0.1:9", HTTP_HOST="127.0.0.1:8420")
    assert foreign.status_code == 403
    own = strict.post("/signin/", form, HTTP_ORIGIN="http://127.0.0.1:8421", HTTP_HOST="127.0.0.1:8421")
    assert own.status_code == 302


def test_the_pages_with_the_token_are_kept_by_no_one(client):
    response = client.get(signin.link_create().path)
    assert "no-store" in response["Cache-Control"]
    assert response["Referrer-Policy"] == "strict-origin"


def test_signing_out(client):
    redeem(client, token_of(signin.link_create()))
    assert client.get("/signout/").status_code == 405
    assert signed_in(client)
    assert client.post("/signout/").url == "/signin/"
    assert not signed_in(client)


@pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/admin/auth/user/"])
def test_the_admin_uses_the_same_signin(client, path):
    response = client.get(path, follow=True)
    assert response.request["PATH_INFO"] == "/signin/"
    assert b"password" in response.content
    assert b'type="password"' not in response.content
    redeem(client, token_of(signin.link_create()))
    assert client.get("/admin/").status_code == 200
    assert client.get("/admin/memex_site/signinlink/").status_code == 200


def test_the_command_prints_a_link_that_works(client, capsys, settings, tmp_path):
    settings.MEMEX_HOME = tmp_path
    call_command("signin_link", "--json", "--port", "9000")
    answer = json.loads(capsys.readouterr().out)
    assert answer["url"].startswith("http://127.0.0.1:9000/signin/")
    assert answer["running"] is False
    assert redeem(client, answer["url"].rsplit("/", 1)[1]).status_code == 302


def test_without_a_server_the_command_says_so(capsys, settings, tmp_path):
    settings.MEMEX_HOME = tmp_path
    call_command("signin_link")
    printed = capsys.readouterr()
    assert printed.out.startswith("http://127.0.0.1:8420/signin/")
    assert "make run" in printed.err


def test_a_token_in_a_path_reaches_no_log_line(client, caplog):
    link = signin.link_create()
    client.get(link.path, REMOTE_ADDR="10.0.0.1")
    records = [record for record in caplog.records if record.name.startswith("django")]
    assert any(token_of(link) in record.getMessage() for record in records)
    for record in records:
        assert token_of(link) not in HideSigninTokens().format(record)


def test_the_formatter_is_on_every_handler():
    handlers = [
        handler
        for logger in (logging.getLogger(), logging.getLogger("django"), logging.getLogger("django.server"))
        for handler in logger.handlers
        if type(handler) is logging.StreamHandler
    ]
    assert handlers
    assert all(isinstance(handler.formatter, HideSigninTokens) for handler in handlers)


def test_tracebacks_are_cleaned_as_well():
    try:
        raise ValueError("GET /signin/secret-token failed")
    except ValueError as error:
        record = logging.LogRecord(
            "x", 40, "", 1, "Error at %s", ("/signin/secret-token?a=1",), (type(error), error, None)
        )
    text = HideSigninTokens().format(record)
    assert "secret-token" not in text
    assert "/signin/…?a=1" in text
