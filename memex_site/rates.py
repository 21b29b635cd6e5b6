"""How often each token may ask. Pure, but for the clock."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable


class Rates:
    """A bucket for each caller that fills up evenly: so many requests a minute, all at once or spread."""

    PER_MINUTE = 1_200
    # Callers that are remembered; who is forgotten has not asked for longest, and begins with a full bucket.
    MOST = 2_000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # (what is left, when that was)
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def wait(self, caller: bytes, cost: float = 1.0) -> int:
        """Whole seconds until this may be asked; 0: now, and it is counted."""
        left = self._left(caller)
        if left < cost:
            return max(1, math.ceil((cost - left) * 60 / self.PER_MINUTE))
        self._put(caller, left - cost)
        return 0

    def give_back(self, caller: bytes, cost: float) -> None:
        self._put(caller, min(self.PER_MINUTE, self._left(caller) + cost))

    def _left(self, caller: bytes) -> float:
        left, at = self._buckets.get(caller, (float(self.PER_MINUTE), 0.0))
        return min(float(self.PER_MINUTE), left + (self._clock() - at) * self.PER_MINUTE / 60)

    def _put(self, caller: bytes, left: float) -> None:
        self._buckets[caller] = (left, self._clock())
        self._buckets.move_to_end(caller)
        while len(self._buckets) > self.MOST:
            self._buckets.popitem(last=False)
