"""One call of a tool, from its arguments to its answer. No transport, and nothing of the SDK."""

import logging
from collections.abc import Mapping
from typing import Any

from django.db import OperationalError
from filelock import Timeout

from records.capacity.compress import DigestRequiresModel
from records.capacity.pools import PoolBusy
from records.durable import is_busy
from records.files import StoreFull
from records.models import Record
from records.services import Conflict, Unreadable
from sessions_app.access import Forbidden, require
from sessions_app.mirror import MirrorDamaged
from sessions_app.queries import SessionNotFound

from .callers import Door, NoSession, NotLetIn, access_for
from .parameters import BadCall, checked
from .rendering import line
from .tool import Tool
from .tools_browse import ASSEMBLE, INDEX, NAV
from .tools_change import COMPRESS, RESTORE, WRITE_TOOL
from .tools_open import OPEN
from .tools_search import GREP, SEARCH

TOOLS = {
    tool.name: tool
    for tool in (SEARCH, OPEN, GREP, WRITE_TOOL, INDEX, RESTORE, COMPRESS, NAV, ASSEMBLE)
}  # fmt: skip

logger = logging.getLogger(__name__)


class ToolRefused(Exception):
    """The message is for the model: what is wrong, and what to do next."""


def tool_named(name: str) -> Tool:
    """ToolRefused."""
    if name not in TOOLS:
        raise ToolRefused(f"There is no tool {line(name, 60)}: {', '.join(TOOLS)}.")
    return TOOLS[name]


def arguments_of(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """ToolRefused."""
    try:
        return checked(tool.name, tool.parameters, given)
    except BadCall as error:
        raise ToolRefused(line(str(error), 600)) from None


def call(tool: Tool, arguments: Mapping[str, Any], door: Door, request: Any, folder: str) -> str:
    """The answer. `folder`: what a call without a session is for. ToolRefused."""
    try:
        principal = door.principal(request)
        require(principal, tool.right)
        access = access_for(door, principal, arguments["session"], folder)
        return tool.run(access, arguments).encode("utf-8", "replace").decode()
    except (BadCall, NoSession, NotLetIn, Forbidden, StoreFull) as error:
        raise ToolRefused(str(error)) from None
    except Record.DoesNotExist:
        named = line(str(arguments.get("id")), RECORD_SHOWN)
        raise ToolRefused(
            f"There is no record {named} that this call may see. memory_search and memory_nav show which there are; "
            "of a private one its session must be given."
        ) from None
    except (Unreadable, MirrorDamaged, SessionNotFound, FileNotFoundError):
        logger.warning("%s: archived text can't be read", tool.name, exc_info=True)
        raise ToolRefused(
            "It is archived, but its text can't be read at the moment. Tell your user: manage.py doctor says more."
        ) from None
    except (PoolBusy, DigestRequiresModel) as error:
        raise ToolRefused(line(str(error), 300)) from None
    except (OperationalError, Timeout) as error:
        if isinstance(error, OperationalError) and not is_busy(error):
            raise _failed(tool) from error
        logger.warning("%s: the store is busy", tool.name, exc_info=True)
        raise ToolRefused("The store is busy. Call again in a moment.") from None
    except Conflict as error:
        raise ToolRefused(f"It was changed at the same moment: {line(str(error), 300)} Call again.") from None
    except Exception:
        raise _failed(tool) from None


def _failed(tool: Tool) -> ToolRefused:
    """To be made where the exception is being handled."""
    logger.exception("%s failed", tool.name)
    return ToolRefused("Memex failed at this call; its log says why. Another way of asking may work.")


RECORD_SHOWN = 60
