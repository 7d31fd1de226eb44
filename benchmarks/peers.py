"""Other ways to retry, on the same work in the same run: CPU time, each way / the bare model.

    python benchmarks/peers.py [--seconds 3]

Where a blank comes first, the bare model is asked once more, the least that a recovery can cost.
Ways that retry errors only do not see a blank, and stand only where none comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_retrying import RetryingChatModel
from shared.models import FastChatModel
from shared.ratios import ratio
from shared.report import Row, control, parser_of, progress, report, row_of
from shared.work import Work, agent, both, invoke, stream, turn

OURS, ERRORS_ONLY = "RetryingChatModel", ", errors only"
WORKS: list[tuple[str, str, Callable[[Any], Work]]] = [
    ("invoke", "chain", invoke),
    ("stream of 100", "chain", stream),
    ("agent turn", "agent", turn),
    ("graph turn", "graph", turn),
]


class BlankError(Exception):
    """What the raising chain raises."""


def is_blank(message: Any) -> bool:
    """As one would write it."""
    return not (message.text or message.tool_calls)


def raise_on_blank(message: AIMessage) -> AIMessage:
    """The step that makes a blank an error."""
    if is_blank(message):
        raise BlankError
    return message


class RetryEmptyMiddleware(AgentMiddleware[Any, Any]):
    """Asks again when the reply is blank."""

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        response = handler(request)
        for _ in range(2):
            if not is_blank(response.result[-1]):
                break
            response = handler(request)
        return response


def graph(model: Any, *, loop: bool = False) -> Any:
    """A graph of one node, with an edge from a blank back to it if there is to be a loop."""

    def call(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def after(state: MessagesState) -> str:
        return "call" if is_blank(state["messages"][-1]) else END

    builder = StateGraph(MessagesState)
    builder.add_node("call", call)
    builder.add_edge(START, "call")
    if loop:
        builder.add_conditional_edges("call", after)
    return builder.compile()


def ways(model: FastChatModel) -> dict[str, dict[str, Any]]:
    """What the model becomes in each way, by what it is used in; the bare one is first."""
    ours, raising = RetryingChatModel(model), model | RunnableLambda(raise_on_blank)
    retry: Any = {"stop_after_attempt": 3, "wait_exponential_jitter": False}
    return {
        "chain": {
            "bare": model,
            OURS: ours,
            f"with_retry{ERRORS_ONLY}": model.with_retry(**retry),
            f"with_fallbacks{ERRORS_ONLY}": model.with_fallbacks([model]),
            "raising chain, with_retry": raising.with_retry(**retry),
            "raising chain, with_fallbacks": raising.with_fallbacks([raising]),
        },
        "agent": {
            "bare": agent(model),
            OURS: agent(ours),
            f"ModelRetryMiddleware{ERRORS_ONLY}": agent(model, ModelRetryMiddleware()),
            "empty-response middleware": agent(model, RetryEmptyMiddleware()),
        },
        "graph": {
            "bare": graph(model),
            OURS: graph(ours),
            "LangGraph loop": graph(model, loop=True),
        },
    }


def cases() -> Iterator[tuple[str, str, Work, Work]]:
    """What is done, the way, and the work of the bare model and of the way."""
    answering, blank_first = FastChatModel(chunks=100), FastChatModel(blank_first=True)
    plain, retried = ways(answering), ways(blank_first)
    for name, kind, work in WORKS:
        bare, *others = plain[kind]
        for way in others:
            yield name, way, work(plain[kind][bare]), work(plain[kind][way])
    for name, kind, work in WORKS:
        bare, *others = plain[kind]
        for way in others:
            if work is not stream and not way.endswith(ERRORS_ONLY):
                twice = both(work(plain[kind][bare]), invoke(answering))
                yield f"{name} after a blank", way, twice, work(retried[kind][way])


def main() -> None:
    """Measure all ways."""
    seconds: float = parser_of(__doc__).parse_args().seconds
    rows: list[Row] = [control(seconds)]
    for group, way, bare, work in progress([*cases()]):
        rows.append(row_of(group, way, ratio(bare, work, seconds=seconds)))
    report("peers", "CPU time, each way / the bare model", rows, seconds=seconds)


if __name__ == "__main__":
    main()
