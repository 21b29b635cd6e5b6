"""What runs beside the pages in the server's process."""

import importlib
import importlib.util
import logging
import threading
from collections.abc import Callable

WORKER = "sessions_app.worker"
# Long enough to finish what it is writing; being killed loses nothing either.
STOP_SECONDS = 5

logger = logging.getLogger(__name__)


def start_background() -> Callable[[], None]:
    """Starts the archiving worker in a thread of its own; calling the result ends it."""
    stop = threading.Event()
    if not importlib.util.find_spec(WORKER):
        return stop.set
    thread = threading.Thread(target=_run_worker, args=(stop,), name="memex-worker", daemon=True)
    thread.start()

    def end() -> None:
        stop.set()
        thread.join(STOP_SECONDS)

    return end


def _run_worker(stop: threading.Event) -> None:
    try:
        importlib.import_module(WORKER).start(stop)
    except Exception:
        # The pages go on; `manage.py archive` does the same work.
        logger.exception("The background worker ended; archiving by itself stops until the next start.")
