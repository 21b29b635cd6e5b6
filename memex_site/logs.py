"""What never reaches a log line."""

import logging
import re

SIGNIN_PATH = re.compile(r"(/signin/)[^\s/?'\"]+")


class HideSigninTokens(logging.Formatter):
    """Django logs the path of a refused request, and a sign-in link holds its secret there."""

    def format(self, record: logging.LogRecord) -> str:
        return SIGNIN_PATH.sub(r"\1…", super().format(record))
