"""Whether text shows a reader anything, told chunk by chunk.

Not visible: white space, control and zero-width characters, and what stands in inline reasoning
tags (`<think>...</think>`), closed or not.
"""

from __future__ import annotations

import re

# Everything but: white space, C0/C1 controls, soft hyphen, joiners, direction marks, fillers that
# render as nothing (Hangul, Braille blank, Khmer vowels), variation selectors, tags, BOM.
_VISIBLE = re.compile(
    "[^\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_NAMES = ("think", "thinking", "reasoning")
_TAG = re.compile(rf"<(/?)(?:{'|'.join(_NAMES)})>", re.IGNORECASE)
_TAGS = tuple(f"{opening}{name}>" for opening in ("<", "</") for name in _NAMES)
_LONGEST_TAG = max(map(len, _TAGS))


class VisibleText:
    """Looks for visible characters in text that arrives in pieces.

    Gives the same answer however the text is cut, in time linear in its length, and keeps no more
    of it than an unfinished tag.
    """

    __slots__ = ("_in_tag", "_opened", "_pending", "saw_reasoning", "visible")

    def __init__(self, *, visible: bool = False) -> None:
        self.visible = visible
        """Whether what has come so far shows anything."""
        self.saw_reasoning = False
        self._in_tag = False
        self._opened = False  # whether there has been an opening tag
        self._pending = ""  # what may yet turn out to be a tag

    def add(self, text: str) -> bool:
        """Take the next piece; gives `visible`."""
        if not self._pending and (text.isspace() or not text):
            return self.visible
        text, self._pending = self._pending + text, ""
        position = 0
        while (tag := _TAG.search(text, position)) is not None:
            closing = bool(tag[1])
            if not self._in_tag:
                self._look(text, position, tag.start())
            if closing and not self._opened:
                # All before it was reasoning: some chat templates open the tag in the prompt.
                self.visible = False
            self._opened = self._opened or not closing
            self.saw_reasoning = True
            self._in_tag = not closing
            position = tag.end()
        unfinished = max(position, _unfinished_tag(text))
        self._pending = text[unfinished:]
        if not self._in_tag:
            self._look(text, position, unfinished)
        return self.visible

    def at_end(self) -> bool:
        """Give `visible`, now that no more text follows to finish a tag."""
        return self.visible or (bool(self._pending) and not self._in_tag)

    def _look(self, text: str, start: int, end: int) -> None:
        self.visible = self.visible or _VISIBLE.search(text, start, end) is not None


def _unfinished_tag(text: str) -> int:
    """Where a tag begins that the end of the text cuts off; the text's length if none does."""
    start = text.rfind("<", max(0, len(text) - _LONGEST_TAG + 1))
    if start >= 0 and any(tag.startswith(text[start:].lower()) for tag in _TAGS):
        return start
    return len(text)
