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
_CLOSING_TAG = re.compile(rf"</(?:{'|'.join(_NAMES)})>", re.IGNORECASE)
_TAGS = tuple(f"{opening}{name}>" for opening in ("<", "</") for name in _NAMES)
_LONGEST_TAG = max(map(len, _TAGS))


class VisibleText:
    """Looks for the first visible character in text that arrives in pieces.

    Gives the same answer however the text is cut, and keeps no more of it than an unfinished tag.
    """

    __slots__ = ("_in_tag", "_pending", "saw_reasoning")

    def __init__(self) -> None:
        self._in_tag = False
        self._pending = ""  # what may yet turn out to be a tag
        self.saw_reasoning = False

    def add(self, text: str) -> bool:
        """Take the next piece; True when something visible is certain to have been in it."""
        text = self._pending + text
        self._pending = ""
        while True:
            if self._in_tag:
                closing = _CLOSING_TAG.search(text)
                if closing is None:
                    tail = text.rfind("<", max(0, len(text) - _LONGEST_TAG))
                    self._pending = text[tail:] if tail >= 0 else ""
                    return False
                text = text[closing.end() :]
                self._in_tag = False
            first = _VISIBLE.search(text)
            if first is None:
                return False
            text = text[first.start() :]
            tag = _TAG.match(text)
            if tag is not None:
                self.saw_reasoning = True
                self._in_tag = not tag[1]  # a closing tag alone is skipped
                text = text[tag.end() :]
                continue
            if _may_become_tag(text):
                self._pending = text
                return False
            return True

    def at_end(self) -> bool:
        """Whether what was pending, now that no more text follows, is visible."""
        return bool(self._pending) and not self._in_tag


def _may_become_tag(text: str) -> bool:
    start = text.lower()
    return len(start) < _LONGEST_TAG and any(tag.startswith(start) for tag in _TAGS)
