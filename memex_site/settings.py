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
MEMEX_CAPACITY_TOKENS = options.number(
    "capacity_tokens",
    100_000_000,
    "How many tokens of a workspace's shared records (L3) are hot.",
    low=10_000,
)
MEMEX_SESSION_CAPACITY_TOKENS = options.number(
    "session_capacity_tokens",
    10_000_000,
    "How many tokens of a session's private records (L2) are hot.",
    low=10_000,
)
MEMEX_TARGET_RATIO = options.fraction(
    "target_ratio", 0.6, "Down to which share of its capacity a pool is compressed.", low=0.1, high=0.95
)
MEMEX_MIN_AGE_HOURS = options.number(
    "min_age_hours", 1, "How many hours old a record must be to go cold when its pool is compressed.", low=0
)
MEMEX_COLD_QUOTA_TOKENS = options.optional_number(
    "cold_quota_tokens",
    "How many tokens of cold records a pool keeps; after a compression the oldest beyond it go to the trash.",
    low=0,
)
MEMEX_CAPACITY_NOTICE_RATIO = options.fraction(
    "capacity_notice_ratio",
    0.8,
    "From which share of its capacity on an agent is told to ask whether a pool may be compressed.",
    low=0.1,
    high=1.0,
)
MEMEX_CAPACITY_NOTICE_COOLDOWN_MINUTES = options.number(
    "capacity_notice_cooldown_minutes", 10, "How many minutes that notice rests after it was given.", low=0
)
MEMEX_REQUIRE_CONFIRMATION = options.switch(
    "require_confirmation", False, "Whether what an agent writes waits until a person confirms it."
)
MEMEX_CATALOG_MAX_CHARS = options.number(
    "catalog_max_chars", 2_400, "Characters of the catalog that an agent is given.", low=600, high=9_500
)
MEMEX_AUTO_RECALL = options.switch(
    "auto_recall", True, "Whether an agent is given records that fit what its user typed."
)
MEMEX_RECALL_MAX_CHARS = options.number(
    "recall_max_chars", 600, "Characters of such a recall.", low=200, high=4_000
)
MEMEX_STANDING_LIMIT = options.number(
    "standing_limit", 8, "How many standing records stand in full in the catalog.", low=0, high=20
)
MEMEX_STANDING_MAX_CHARS = options.number(
    "standing_max_chars", 1_200, "Characters of all standing records together.", low=200, high=8_000
)
MEMEX_MAX_INLINE_CHARS = options.number(
    "max_inline_chars", 14_000, "Characters of a tool's answer; what is longer is given in pages.", low=400
)
MEMEX_OPEN_MAX_CHARS = options.number(
    "open_max_chars", 30_000, "Characters of a page when an agent opens a record.", low=2_000, high=60_000
)
MEMEX_EVICT_AT_RATIO = options.fraction(
    "evict_at_ratio",
    0.6,
    "From which share of an agent's window on its oldest events are archived and leave it.",
    low=0.1,
    high=0.95,
)
MEMEX_RETAIN_RATIO = options.fraction_below(
    "retain_ratio",
    0.35,
    "Which share of the window its newest events keep then.",
    low=0.0,
    other="evict_at_ratio",
    limit=MEMEX_EVICT_AT_RATIO,
)
MEMEX_EVICT_MAX_CHARS = options.number(
    "evict_max_chars", 250_000, "Characters that leave the window at once, at most.", low=10_000
)
MEMEX_CAPTURE_LEVEL = options.choice(
    "capture_level",
    "deepest",
    "Where evicted events go: to the deepest level that is on, or to L2.",
    choices=("deepest", "l2"),
)
MEMEX_SENSITIVE_POLICY = options.choice(
    "sensitive_policy",
    "auto",
    "What becomes of a record with something in it that looks like a password or key: private (auto), only "
    "listed (flag), left out of what is searched (redact), or not looked for.",
    choices=("auto", "flag", "redact", "off"),
)
# An agent that is given its token this way hands it on to whatever it starts.
options.refuse_unknown("MEMEX_TOKEN")
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
    # For the page to try the API: without it, it would load its scripts from elsewhere.
    "ninja",
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
# Of an agent's events; each route has its own, lower limit.
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024
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
