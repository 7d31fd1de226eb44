"""Whether text shows a reader anything, told chunk by chunk.

Not visible: white space, control and zero-width characters; what stands in inline reasoning
tags (`<think>...</think>`), closed or not; a chat template's own tokens (`<|im_end|>`, `</s>`) with
what heads a turn after them (`<|start|>assistant`), and the analysis channel of gpt-oss.
"""

from __future__ import annotations

import re

# Everything but: white space, C0/C1 controls, soft hyphen, joiners, direction marks, fillers that
# render as nothing (Hangul, Braille blank, Khmer vowels), variation selectors, tags, BOM.
_VISIBLE = re.compile(
    "[^\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
# A tag's name may have that of a model before it: `seed:think`.
_NAME = (
    r"(?i:(?:[\w-]{1,32}:|chain_of_)?(?:think|thinking|thoughts?|reasoning)(?:_process|_content)?)"
)
_ATTRIBUTE = r"""\s+[\w:-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+)"""
_MARK = re.compile(
    rf"(?P<tag></?{_NAME}(?:{_ATTRIBUTE})*\s*/?>|◁/?{_NAME}▷|\[/?THINK\])"
    r"|<[|\uff5c](?P<token>[^<>\n]*)[|\uff5c]>"
    r"|</?s>|<(?:bos|eos|pad|unk|(?:start|end)_of_(?:turn|text|image))>|\[/?INST\]"
)
# What may yet become one of these, at the end of a text.
_BEGUN = re.compile(
    rf"</?(?:[\w-]*(?::[\w-]*)?|{_NAME}\s[^<>]*)/?\Z|<[|\uff5c][^<>\n]*\Z|◁/?[\w:-]*\Z"
    r"|\[/?(?:T(?:H(?:I(?:NK?)?)?)?|I(?:N(?:ST?)?)?)?\Z"
)
_LONGEST_MARK = 128
_OPENERS = "<[◁"
_OPENER = re.compile(r"[<◁]|\[(?=/?(?:THINK|INST)\])")
# Tokens after which stands a turn's role or channel, up to the next one or to the line's end.
_HEADER = re.compile(r"\s*[\w.-]{0,64}\s*(?:t|to|to=\S{0,64}\s*[\w.-]{0,32}\s*)?")
_HEADERS = ("start", "im_start", "start_header_id", "channel")


class VisibleText:
    """Looks for visible characters in text that arrives in pieces.

    Gives the same answer however the text is cut, in time linear in its length, and keeps no more
    of it than an unfinished tag.
    """

    __slots__ = (
        "_header",
        "_in_analysis",
        "_in_tag",
        "_opened",
        "_pending",
        "saw_reasoning",
        "visible",
    )

    def __init__(self, *, visible: bool = False) -> None:
        self.visible = visible
        """Whether what has come so far shows anything."""
        self.saw_reasoning = False
        self._in_tag = False
        self._in_analysis = False  # a channel of gpt-oss that is not for the reader
        self._opened = False  # whether there has been an opening tag
        self._header: str | None = None  # of the turn that begins, as far as it has come
        self._pending = ""  # what may yet turn out to be a tag or a token

    def add(self, text: str) -> bool:
        """Take the next piece; gives `visible`."""
        if not self._pending:
            if not text or (self._header is None and text.isspace()):
                return self.visible
            if not any(opener in text for opener in _OPENERS):
                self._look(text, 0, len(text))
                return self.visible
        text, self._pending = self._pending + text, ""
        position = 0
        for opener in _OPENER.finditer(text):
            mark = _MARK.match(text, opener.start()) if opener.start() >= position else None
            # A longer one would not be held, where it comes in pieces.
            if mark is None or mark.end() - mark.start() > _LONGEST_MARK + 1:
                continue
            self._look(text, position, mark.start())
            if mark["tag"]:
                self._take_tag(mark["tag"])
            elif mark["token"]:
                self._take_token(mark["token"])
            position = mark.end()
        unfinished = max(position, _begun_mark(text))
        self._pending = text[unfinished:]
        self._look(text, position, unfinished)
        return self.visible

    def at_end(self) -> bool:
        """Give `visible`, now that no more text follows to finish a tag."""
        return self.visible or (bool(self._pending) and not self._is_hidden)

    @property
    def _is_hidden(self) -> bool:
        return self._in_tag or self._in_analysis or self._header is not None

    def _take_tag(self, tag: str) -> None:
        if tag.endswith("/>"):
            return  # opens and closes
        closing = tag[1] == "/"
        if closing and not self._opened:
            # All before it was reasoning: some chat templates open the tag in the prompt.
            self.visible = False
        self._opened = self._opened or not closing
        self.saw_reasoning = True
        self._in_tag = not closing

    def _take_token(self, token: str) -> None:
        self._in_analysis = (self._header or "").startswith("analysis")
        self.saw_reasoning = self.saw_reasoning or self._in_analysis
        self._header = "" if token in _HEADERS else None

    def _look(self, text: str, start: int, end: int) -> None:
        if self._header is not None:
            line_end = text.find("\n", start, end)
            stop = end if line_end < 0 else line_end
            header = self._header + text[start:stop]
            if _HEADER.fullmatch(header) is None:
                self._header = None  # it heads no turn: a text begins with such a token
                self._show(header, 0, len(header))
            elif line_end < 0:
                self._header = header
                return
            else:
                self._header = None
            start = stop
        self._show(text, start, end)

    def _show(self, text: str, start: int, end: int) -> None:
        if not (self.visible or self._in_tag or self._in_analysis):
            self.visible = _VISIBLE.search(text, start, end) is not None


def _begun_mark(text: str) -> int:
    """Where a tag or token begins that the end of the text cuts off; else the text's length."""
    starts = (text.rfind(opener, max(0, len(text) - _LONGEST_MARK)) for opener in _OPENERS)
    begun = [start for start in starts if start >= 0 and _BEGUN.match(text, start)]
    return min(begun, default=len(text))
