"""A call driven by hand: what the entry points do, but for sending and waiting."""

from __future__ import annotations

from typing import Any

from langchain_retrying._call.call import Call, Over, Retry
from langchain_retrying._call.replies import StreamedReply, WholeReply


class Driven(Call):
    """Remembers the last decision."""

    step: Retry | Over | None = None

    def answer(self, given: Any = ()) -> Any:
        """End an attempt, of a stream with chunks; what goes out, or None where a retry follows."""
        if isinstance(self.reply, StreamedReply):
            for chunk in given:
                if self.reply.add(chunk):
                    break
            given = None
        self.step = self.ended(given)
        return self.outcome()

    def raises(self, error: Exception) -> bool:
        """End an attempt with an exception; whether that was taken, and is not to be raised."""
        self.step = self.failed(error)
        return self.step is not None

    def outcome(self) -> Any:
        """What goes out; None where a retry follows."""
        if isinstance(self.step, Retry):
            return None
        out = list(self.out(self.step))
        return out[-1] if isinstance(self.reply, WholeReply) else out

    def again(self) -> None:
        """Begin the next attempt."""
        self.begin(self.step)

    @property
    def is_over(self) -> bool:
        return self.step in (Over.ACCEPTED, Over.EXHAUSTED)
