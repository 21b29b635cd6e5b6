"""How much may be said at once. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .messages import Message

# The tags around a text, with form and id.
_TAGS = 90


@dataclass(frozen=True)
class Budget:
    """What an agent takes in one addition, with our tags, as `measure` counts it. `most` None: anything."""

    most: int | None = None
    measure: Callable[[str], int] = len

    def room(self, said: Sequence[Message], reserved: int = 0) -> "Room":
        """What is left beside these messages and `reserved` characters that are still to come."""
        if self.most is None:
            return Room(None, self.measure)
        used = sum(self.measure(message.wrapped) + 1 for message in said)
        return Room(self.most - used - reserved - _TAGS, self.measure)

    def holds(self, messages: Sequence[Message]) -> bool:
        return (
            self.most is None or sum(self.measure(message.wrapped) + 1 for message in messages) <= self.most
        )


@dataclass(frozen=True)
class Room:
    left: int | None
    measure: Callable[[str], int]

    def characters(self, most: int) -> int:
        """At most so many are worth trying."""
        return most if self.left is None else max(0, min(most, self.left))

    def holds(self, text: str) -> bool:
        return self.left is None or self.measure(text) <= self.left


UNLIMITED = Budget()
# More is written to a file, and the model sees the beginning and a path.
CLAUDE_CODE = Budget(9_500)
# 2,300 tokens, which Codex takes for four bytes each.
CODEX = Budget(2_300 * 4, lambda text: len(text.encode("utf-8", "replace")))
