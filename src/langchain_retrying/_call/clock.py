"""The clock and the waits, in one place, so that `testing.RecordingSleep` can stand in for them."""

from __future__ import annotations

import asyncio
import sys
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


class Cancelling:
    """Cancels the task that is inside it when a moment comes, and ends there.

    As `asyncio.timeout`, which Python 3.10 has not: the work stays in its task, and cancellation
    that has another cause goes through.

    Args:
        moment: Of `monotonic`.
        is_needed: Asked at that moment.

    """

    def __init__(self, moment: float, is_needed: Callable[[], bool]) -> None:
        self._moment = moment
        self._is_needed = is_needed
        self._fired = False

    def __enter__(self) -> None:
        task: Any = asyncio.current_task()
        self._task = task
        self._before = _cancelling(task)
        seconds = max(0.0, self._moment - monotonic())
        self._timer = asyncio.get_running_loop().call_later(seconds, self._fire)

    def _fire(self) -> None:
        if self._is_needed():
            self._fired = True
            self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self._timer.cancel()
        if not self._fired:
            return False
        others = _uncancel(self._task) > self._before
        return kind is asyncio.CancelledError and not others


def _cancelling(task: Any) -> int:
    return task.cancelling() if sys.version_info >= (3, 11) else 0


def _uncancel(task: Any) -> int:
    return task.uncancel() if sys.version_info >= (3, 11) else 0
