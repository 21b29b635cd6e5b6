import stat
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register

OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@register
def home_is_private(**_: Any) -> list[CheckMessage]:
    """A folder that existed before Memex keeps the permissions its maker gave it."""
    home = Path(settings.MEMEX_HOME)
    if not home.stat().st_mode & OPEN_TO_OTHERS:
        return []
    return [
        Warning(
            f"Other users of this machine can look into {home}.",
            hint=f"chmod 700 {home}",
            id="memex.W001",
        )
    ]
