"""`manage.py watch`: archive at once whenever an agent's log grows."""

import logging
import signal
import threading
from types import FrameType
from typing import Any

from sessions_app.management.store import StoreCommand
from sessions_app.worker import start


class Command(StoreCommand):
    help = (
        "Follow agents' logs and archive as soon as they grow, until stopped. `make run` does the same; "
        "of several at once one works and the others stand by."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        stop = threading.Event()

        def end(number: int, frame: FrameType | None) -> None:
            stop.set()

        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)
        self.stdout.write("Watching agents' logs. Ctrl-C ends it.")
        self.stdout.flush()
        start(stop)
