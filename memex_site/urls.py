from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.templatetags.static import static
from django.urls import include, path
from django.utils.functional import lazystr
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import RedirectView

from . import views
from .api.api import api, hooks_api, not_found, open_to_agents
from .connect import views as connect_views

urlpatterns = [
    path("", views.home, name="home"),
    path("", include("sessions_app.urls")),
    path("records/", include("records.urls")),
    path("connect/", connect_views.connect, name="connect"),
    path("connect/tokens", connect_views.token_create, name="token_create"),
    path("connect/tokens/<int:pk>/revoke", connect_views.token_revoke, name="token_revoke"),
    path("connect/agents/<str:agent>", connect_views.agent_change, name="agent_change"),
    path("signin/", views.signin_page, name="signin"),
    path("signin/<str:token>", views.signin_confirm, name="signin_confirm"),
    path("signout/", views.signout, name="signout"),
    # The admin has no password form of its own.
    path("api/", open_to_agents(api.urls)),
    path("hooks/", open_to_agents(hooks_api.urls)),
    path("api/<path:rest>", login_not_required(csrf_exempt(not_found))),
    path("hooks/<path:rest>", login_not_required(csrf_exempt(not_found))),
    path("admin/login/", login_not_required(RedirectView.as_view(pattern_name="signin"))),
    path("admin/", admin.site.urls),
    path("favicon.ico", login_not_required(RedirectView.as_view(url=lazystr(static("favicon.svg"))))),
]
