"""The wordings of the nudge that were compared, by the kind of empty reply that they are for.

"now" is the default. Wordings that demand a sentence are here to compare: the default only allows
it, since the request may want a long answer. Where a kind has a wording of its own, it is the one
for a blank with a word more; "now" is compared with what was said before.
"""

from langchain_core.messages import AIMessage, HumanMessage

from langchain_retrying import DEFAULT_NUDGE, EmptyCompletionError, ReplyKind
from langchain_retrying._errors import RejectedAttempt
from langchain_retrying._policy.remedies import Request
from langchain_retrying.testing import ScriptedChatModel


def default_wording(
    kind: ReplyKind = ReplyKind.BLANK,
    *,
    tools: bool = True,
    attempts: int = 1,
    saw_reasoning: bool = False,
) -> str:
    """What the library says now."""
    rejected = RejectedAttempt(kind, None, 0.0, 0, 0, saw_reasoning)
    error = EmptyCompletionError(
        [rejected] * attempts, elapsed_seconds=0.0, last_message=AIMessage("")
    )
    bound = {"tools": [{"name": "f"}]} if tools else {}
    asked = Request([HumanMessage("")], bound, ScriptedChatModel())
    return str(DEFAULT_NUDGE(asked, error).messages[-1].content).strip()


_OLD_END = (
    " Reply in plain text now, or make a tool call that is still needed. If the work is done, say "
    "so in one sentence; do not repeat a tool call you have made."
)
_CALL = " or make a tool call that is still needed; do not repeat one you have made."

WORDINGS: dict[str, dict[str, str]] = {
    "blank, tools bound": {
        "old": f"Your last reply was empty.{_OLD_END}",
        "now": default_wording(),
        "outcome, demands brevity": (
            f"Tell me the outcome of my request in a sentence or two,{_CALL}"
        ),
        "outcome, if enough": (
            f"Tell me the outcome of my request, in a sentence if that is enough,{_CALL}"
        ),
        "outcome, no length": f"Tell me the outcome of my request,{_CALL}",
        "calls first": (
            "Make a tool call that is still needed, but repeat none. If none is, tell me the "
            "outcome of my request in a sentence or two."
        ),
        "what came of it": (
            "What came of my request? Answer in a sentence or two, or make the next tool call."
        ),
        "from results": (
            "With the results above, answer my request; a sentence is enough. Call a tool only if "
            "something is still missing."
        ),
        "what I asked for": (
            "Please give me what I asked for. If it is done, a sentence on the outcome is enough. "
            "If a tool call that you have not made is still needed, make it instead."
        ),
        "done or found": (
            "What was done or found for my request? A sentence is enough. If a tool call that you "
            "have not made is still needed, make it instead."
        ),
    },
    "blank, no tools": {
        "old": (
            "Your last reply was empty. Reply in plain text now. If there is nothing to add, say "
            "so in one sentence."
        ),
        "now": default_wording(tools=False),
        "please answer": "Please answer my request now.",
        "little": "Please answer my request; a sentence is enough if little is to be said.",
        "done or found": "What was done or found for my request? A sentence is enough.",
        "outcome": "Tell me the outcome of my request, in a sentence if that is enough.",
    },
    "reasoning only": {
        "old": f"Your last reply held reasoning only, so nothing of it could be used.{_OLD_END}",
        "now": default_wording(saw_reasoning=True),
    },
    "malformed": {
        "old": f"Your last reply was lost because its tool call was malformed.{_OLD_END}",
        "now": default_wording(ReplyKind.MALFORMED),
    },
    "truncated": {
        "old": f"Your last reply was cut off before it said anything. Be brief.{_OLD_END}",
        "now": default_wording(ReplyKind.TRUNCATED),
    },
    "second retry": {
        "old": f"Your last reply was empty. Nothing usable has come 2 times now.{_OLD_END}",
        "now": default_wording(attempts=2),
    },
}
