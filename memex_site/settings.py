"""Django settings. Everything a user may change is an option: see docs/settings.md."""

import os
from pathlib import Path

from csp.constants import NONE, SELF

from . import env, home
from .options import OptionTable

BASE_DIR = Path(__file__).resolve().parent.parent

options = OptionTable()
MEMEX_HOME = options.folder("home", "~/.memex", "Where everything Memex keeps lies.")
DEBUG = options.switch("debug", False, "Detailed error pages and static files read anew; for development.")
MEMEX_DEFAULT_LEVELS = options.choice(
    "default_levels",
    "none",
    "Which levels are on for a session, in a workspace for which nothing was chosen.",
    choices=("none", "l2", "l3", "l2+l3"),
)
MEMEX_SETTINGS_TTL_DAYS = options.number(
    "settings_ttl_days",
    90,
    "After how many days the switches of a session that owns nothing are dropped; 0 = never.",
    low=0,
)
MEMEX_AUTO_ARCHIVE = options.switch(
    "auto_archive", True, "Whether the server archives compactions by itself, as agents' logs grow."
)
MEMEX_IDLE_ARCHIVE_HOURS = options.number(
    "idle_archive_hours",
    24,
    "After how many idle hours a session counts as ended and the rest of it is archived; 0 = never.",
    low=0,
)
MEMEX_TRASH_DAYS = options.number(
    "trash_days", 30, "How many days what was forgotten can be brought back; then it is purged.", low=1
)
MEMEX_MIRROR_MAX_GB = options.optional_number(
    "mirror_max_gb", "From which size of all mirrored logs a notice is shown; nothing is removed.", low=1
)
MEMEX_MIN_FREE_MB = options.number(
    "min_free_mb",
    1_024,
    "Below this much free disk nothing new is captured: agents need the disk too.",
    low=0,
)
options.refuse_unknown()
MEMEX_OPTIONS = tuple(options.options)

home.refuse_inside(MEMEX_HOME, BASE_DIR)
# Whatever this process creates is its owner's alone.
os.umask(0o077)
home.prepare(MEMEX_HOME)
SECRET_KEY = home.secret_key(MEMEX_HOME)

# Where agents keep their logs, by the variables the agents themselves read.
AGENT_HOMES = {
    "claude-code": env.agent_home("CLAUDE_CONFIG_DIR", "~/.claude"),
    "codex": env.agent_home("CODEX_HOME", "~/.codex"),
    "dsh": env.agent_home("DSH_HOME", "~/.dsh"),
}
# Claude Code keeps its user's MCP servers here: beside its folder, unless that is named.
CLAUDE_STATE_FILE = env.agent_home("CLAUDE_CONFIG_DIR", "~") / ".claude.json"

# Only this machine: a page of another site that points a name of its own at 127.0.0.1 is refused.
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]

# daphne is not among the apps: importing it doubles the start of every command, and only `serve` needs it.
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "csp",
    "django_htmx",
    "template_partials",
    "memex_site",
    "records",
    "sessions_app",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "memex_site.urls"
ASGI_APPLICATION = "memex_site.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": MEMEX_HOME / "index.db",
        # A file as well: in memory SQLite has no WAL, and other locks.
        "TEST": {"NAME": MEMEX_HOME / "test.db"},
        "OPTIONS": {
            "timeout": 20,
            # A deferred transaction that reads and then writes fails at once with "database is
            # locked" when another process writes in between, whatever the timeout.
            "transaction_mode": "IMMEDIATE",
            "init_command": (
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA mmap_size=134217728;"
                " PRAGMA journal_size_limit=27103364; PRAGMA cache_size=-16000;"
                # What is forgotten is overwritten, not only unlinked from its table.
                " PRAGMA secure_delete=ON;"
            ),
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"

# No collectstatic: WhiteNoise reads each app's own static files when the server starts.
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_ALLOW_ALL_ORIGINS = False
# The names carry no hash, so browsers must ask whether a file is still the same.
WHITENOISE_MAX_AGE = 0

LOGIN_URL = "signin"
LOGIN_REDIRECT_URL = "home"
# A browser sends cookies of 127.0.0.1 to every port: names of our own don't clash with another server's.
SESSION_COOKIE_NAME = "memex_session"
CSRF_COOKIE_NAME = "memex_csrf"
CSRF_COOKIE_HTTPONLY = True
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"safe": {"()": "memex_site.logs.HideSigninTokens"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "safe"}},
    "loggers": {
        "django": {"handlers": ["console"], "level": "INFO", "propagate": False},
        "django.server": {"handlers": ["console"], "level": "INFO", "propagate": False},
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
}
