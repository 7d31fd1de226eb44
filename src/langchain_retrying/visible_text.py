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

    __slots__ = ("_in_tag", "_pending", "saw_reasoning", "visible")

    def __init__(self, *, visible: bool = False) -> None:
        self.visible = visible
        """Whether what has come so far shows anything."""
        self.saw_reasoning = False
        self._in_tag = False
        self._pending = ""  # what may yet turn out to be a tag

    def add(self, text: str) -> bool:
        """Take the next piece; gives `visible`."""
        text, self._pending = self._pending + text, ""
        while (tag := _TAG.search(text)) is not None:
            closing = bool(tag[1])
            if not self._in_tag:
                # A closing tag alone says that all before it was reasoning: some chat templates
                # put the opening one into the prompt.
                self.visible = not closing and self._shows(text[: tag.start()])
            self.saw_reasoning = True
            self._in_tag = not closing
            text = text[tag.end() :]
        unfinished = _unfinished_tag(text)
        self._pending = text[unfinished:]
        if not self._in_tag:
            self.visible = self._shows(text[:unfinished])
        return self.visible

    def at_end(self) -> bool:
        """Give `visible`, now that no more text follows to finish a tag."""
        return self.visible or (bool(self._pending) and not self._in_tag)

    def _shows(self, text: str) -> bool:
        return self.visible or _VISIBLE.search(text) is not None


def _unfinished_tag(text: str) -> int:
    """Where a tag begins that the end of the text cuts off; the text's length if none does."""
    start = text.rfind("<", max(0, len(text) - _LONGEST_TAG + 1))
    if start >= 0 and any(tag.startswith(text[start:].lower()) for tag in _TAGS):
        return start
    return len(text)
