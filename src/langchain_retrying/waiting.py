"""The clock and the waits, in one place, so that `testing.RecordingSleep` can stand in for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

monotonic: Callable[[], float] = time.monotonic
sleep: Callable[[float], None] = time.sleep
asleep: Callable[[float], Awaitable[None]] = asyncio.sleep
