import ipaddress
from collections.abc import Callable
from functools import wraps

from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from records.views import memory, own_page
from sessions_app.page_queries import is_first_visit
from sessions_app.views.store import workspaces

from . import signin

View = Callable[..., HttpResponse]
# In the browser's session: the page that was asked for before signing in.
WANTED = "wanted-page"


def loopback_only(view: View) -> View:
    """A sign-in link that leaked is worth nothing on another machine."""

    @wraps(view)
    def checked(request: HttpRequest, *args: str, **kwargs: str) -> HttpResponse:
        if not _is_loopback(request.META.get("REMOTE_ADDR", "")):
            raise PermissionDenied("Signing in is possible on the machine that runs Memex only.")
        return view(request, *args, **kwargs)

    return checked


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The Memory page; before anything is switched on, the choice of what to remember."""
    return workspaces(request) if is_first_visit() else memory(request)


@login_not_required
@never_cache
@loopback_only
def signin_page(request: HttpRequest) -> HttpResponse:
    """GET explains how to get a link; POST exchanges a link's token for a session."""
    if request.method == "POST":
        return _redeem(request)
    wanted = request.GET.get("next", "")
    if request.user.is_authenticated:
        return redirect(own_page(wanted))
    if wanted:
        request.session[WANTED] = wanted
    return render(request, "signin/explain.html")


@login_not_required
@never_cache
@loopback_only
@require_safe
def signin_confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Changes nothing, so that a program which merely opens the link doesn't use it up."""
    if not signin.link_is_good(token):
        return render(request, "signin/explain.html", {"problem": "used"}, status=403)
    response = render(request, "signin/confirm.html", {"token": token})
    # Not `no-referrer`: under it browsers send `Origin: null` with the form, which the CSRF check refuses.
    response["Referrer-Policy"] = "strict-origin"
    return response


@require_POST
def signout(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("signin")


def _redeem(request: HttpRequest) -> HttpResponse:
    if signin.failures_exceeded():
        return render(request, "signin/explain.html", {"problem": "too many"}, status=429)
    if not signin.link_redeem(request.POST.get("token", "")):
        signin.failure_note()
        return render(request, "signin/explain.html", {"problem": "used"}, status=403)
    wanted = request.session.pop(WANTED, "")
    login(request, signin.owner())
    return redirect(own_page(wanted))


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
