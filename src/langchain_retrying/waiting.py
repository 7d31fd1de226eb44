"""The clock and the waits, in one place, so that `testing.RecordingSleep` can stand in for them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tenacity import sleep_using_event


def _sleep(seconds: float, event: threading.Event | None = None) -> None:
    """Wait so long, or until the event is set."""
    if event is None:
        time.sleep(seconds)
    else:
        sleep_using_event(event)(seconds)


monotonic: Callable[[], float] = time.monotonic
sleep: Callable[..., None] = _sleep
asleep: Callable[[float], Awaitable[None]] = asyncio.sleep


async def done_until(moment: float, work: Awaitable[Any]) -> None:
    """Await work, but at most until a moment of `monotonic`; then it is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=max(0.0, moment - monotonic()))
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    if not task.cancelled():
        task.result()
