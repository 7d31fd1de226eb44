"""Whether text shows a reader anything, told chunk by chunk.

Not visible: white space, control and zero-width characters; what stands in inline reasoning
tags (`<think>...</think>`), closed or not; a chat template's own tokens (`<|im_end|>`, `</s>`) with
what heads a turn after them (`<|start|>assistant`), and the analysis channel of gpt-oss.
"""

from __future__ import annotations

import re
from typing import Any

# Everything but: white space, C0/C1 controls, soft hyphen, joiners, direction marks, fillers that
# render as nothing (Hangul, Braille blank, Khmer vowels), variation selectors, tags, BOM.
_VISIBLE = re.compile(
    "[^\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0"  # Hangul fillers, letters to Unicode

# A mark is a tag or a token. A tag's name may have that of a model before it: `seed:think`.
_NAME = (
    r"(?i:(?:[\w-]{1,32}:|chain_of_)?(?:think(?:ing)?|thoughts?|reasoning)(?:_process|_content)?)"
)
_ATTRIBUTE = r"""\s+[\w:-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+)"""
# Tokens after which stands a turn's role or channel, up to the next token or to the line's end.
_HEADED = (
    r"<\|(?:start|im_start|start_header_id|channel)\|>"
    r"(?P<header> {0,8}[\w.-]{0,32} {0,8}(?:t|to|to=[^\s<]{0,32} {0,4}[\w.-]{0,16} {0,4})?)"
)
_LONGEST = 127  # characters of a mark between its first and its last; what is longer is none
_MARK = re.compile(
    rf"(?P<tag><(?=[^<>]{{,{_LONGEST}}}>)/?{_NAME}(?:{_ATTRIBUTE})*\s*/?>|◁/?{_NAME}▷|\[/?THINK\])"
    r"|</?s>|<(?:bos|eos|pad|unk|(?:start|end)_of_(?:turn|text|image))>|\[/?INST\]|<\|message\|>"
    rf"|{_HEADED}(?=[\n<])|(?P<token><[|\uff5c][^<>\n]{{,{_LONGEST - 2}}}[|\uff5c]>)"
)
_OPENERS = "<[◁"
_OPENER = re.compile(r"[<◁]|\[(?=/?(?:THINK|INST)\])")
# What may yet become a mark, at the end of a text.
_BEGUN = re.compile(
    rf"</?(?:[\w-]*(?::[\w-]*)?|{_NAME}\s[^<>]*)/?\Z|<[|\uff5c][^<>\n]*\Z|{_HEADED}\Z"
    r"|◁/?[\w:-]*\Z|\[/?(?:T(?:H(?:I(?:NK?)?)?)?|I(?:N(?:ST?)?)?)?\Z"
)


class VisibleText:
    """Looks for visible characters in text that arrives in pieces.

    Gives the same answer however the text is cut, in time linear in its length, and keeps no more
    of it than an unfinished mark.
    """

    __slots__ = ("_in_analysis", "_in_tag", "_pending", "_was_opened", "saw_reasoning", "visible")

    def __init__(self, *, visible: bool = False) -> None:
        self.visible = visible
        """Whether what has come so far shows anything."""
        self.saw_reasoning = False
        self._in_tag = False
        self._in_analysis = False  # a channel of gpt-oss that is not for the reader
        self._was_opened = False  # whether there has been an opening tag
        self._pending = ""  # what may yet turn out to be a mark

    def add(self, text: str) -> bool:
        """Take the next piece; gives `visible`."""
        if self._pending or "<" in text or "[" in text or "◁" in text:
            self._add_marked(self._pending + text)
        else:
            self._look_at(text)
        return self.visible

    def at_end(self) -> bool:
        """Give `visible`, now that no more text follows to finish a mark."""
        hidden = self._in_tag or self._in_analysis or re.fullmatch(_HEADED, self._pending)
        return self.visible or (bool(self._pending) and not hidden)

    def _add_marked(self, text: str) -> None:
        end = _start_of_unfinished_mark(text)
        position = 0
        for opener in _OPENER.finditer(text, 0, end):
            mark = _MARK.match(text, opener.start()) if opener.start() >= position else None
            if mark is not None:
                self._look_at(text[position : mark.start()])
                self._pass(mark)
                position = mark.end()
        self._look_at(text[position:end])
        self._pending = text[end:]

    def _pass(self, mark: re.Match[str]) -> None:
        tag, header, token = mark["tag"], mark["header"], mark["token"]
        if header or token:
            self._in_analysis = (header or "").startswith("analysis")
            self.saw_reasoning = self.saw_reasoning or self._in_analysis
        elif tag and not tag.endswith("/>"):  # which opens and closes
            self._in_tag = tag[1] != "/"
            self._was_opened = self._was_opened or self._in_tag
            # Some chat templates open the tag in the prompt; then all before its end was reasoning.
            self.visible = self.visible and self._was_opened
            self.saw_reasoning = True

    def _look_at(self, text: str) -> None:
        if not (self.visible or self._in_tag or self._in_analysis):
            self.visible = _VISIBLE.search(text) is not None


def text_in(content: Any) -> str:
    """All text in content, as it stands."""
    blocks = content if isinstance(content, list) else [content]
    texts = (block.get("text") if isinstance(block, dict) else block for block in blocks)
    return "".join(text for text in texts if isinstance(text, str))


def is_plain_text(content: Any) -> bool:
    """Whether content is text that begins with a letter or a digit and holds no mark.

    That is the commonest answer, and told in a fraction of a microsecond.
    """
    return (
        type(content) is str
        and content[:1].isalnum()
        and "<" not in content
        and content[0] not in _BLANK_LETTERS
        and "[" not in content
        and "◁" not in content
    )


def shows_something(text: str) -> bool:
    """Whether a whole text shows anything."""
    visible = VisibleText()
    visible.add(text)
    return visible.at_end()


def _start_of_unfinished_mark(text: str) -> int:
    """Where a mark begins that the end of the text cuts off; else the text's length."""
    starts = (text.rfind(opener, max(0, len(text) - _LONGEST - 1)) for opener in _OPENERS)
    begun = [start for start in starts if start >= 0 and _BEGUN.match(text, start)]
    return min(begun, default=len(text))
