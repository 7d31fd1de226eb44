"""Other ways to retry, on the same work in the same run: CPU time as a ratio to the bare model.

    python benchmarks/peers.py [--seconds 3]

Where a blank comes first, the bare model is asked once more, the least that a recovery can cost.
Ways that retry errors only do not see a blank, and stand only where none comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_retrying import RetryingChatModel
from shared.models import BlankFirst, FastChatModel
from shared.ratios import ratio
from shared.report import noise_of_machine, progress, report, row_of, seconds_of_command_line

Work = Callable[[], object]
OURS = "RetryingChatModel"
TURN: Any = {"messages": [("user", "Hi")]}


class BlankError(Exception):
    """What the raising chain raises."""


class RetryEmptyMiddleware(AgentMiddleware[Any, Any]):
    """Asks again when the reply has neither text nor a tool call, as one would write it."""

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        response = handler(request)
        for _ in range(2):
            if not _is_blank(response.result[-1]):
                break
            response = handler(request)
        return response


def look_up(key: str) -> str:
    """Look up a value."""
    return key


def raising(model: Any) -> Any:
    """The model with a step behind it that raises where a blank has come."""
    return model | RunnableLambda(_raise_on_blank)


def with_retry(runnable: Any) -> Any:
    """Retried on errors, without waits."""
    return runnable.with_retry(stop_after_attempt=3, wait_exponential_jitter=False)


def agent(model: Any, *middleware: Any) -> Any:
    """An agent with one tool."""
    return create_agent(model, [look_up], middleware=middleware)


def graph(model: Any, *, loop: bool = False) -> Any:
    """A graph of one node, with an edge from a blank back to it if there is to be a loop."""

    def call(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def after(state: MessagesState) -> str:
        return "call" if _is_blank(state["messages"][-1]) else END

    builder = StateGraph(MessagesState)
    builder.add_node("call", call)
    builder.add_edge(START, "call")
    if loop:
        builder.add_conditional_edges("call", after)
    return builder.compile()


def where_no_blank_comes() -> Iterator[tuple[str, Work, list[tuple[str, Work]]]]:
    """Kinds of work: a name, the bare model's, and that of each way."""
    bare = FastChatModel(chunks=100)
    ours = RetryingChatModel(bare)
    chains = [
        (OURS, ours),
        ("with_retry, errors only", with_retry(bare)),
        ("raising chain, with_retry", with_retry(raising(bare))),
        ("with_fallbacks, errors only", bare.with_fallbacks([bare])),
    ]
    yield "invoke", _asking(bare), [(name, _asking(chain)) for name, chain in chains]
    yield "stream of 100", _reading(bare), [(name, _reading(chain)) for name, chain in chains]
    agents = [
        (OURS, agent(ours)),
        ("ModelRetryMiddleware, errors only", agent(bare, ModelRetryMiddleware())),
        ("empty-response middleware", agent(bare, RetryEmptyMiddleware())),
    ]
    yield "agent turn", _turning(agent(bare)), [(name, _turning(each)) for name, each in agents]
    graphs = [(OURS, graph(ours)), ("LangGraph loop", graph(bare, loop=True))]
    yield "graph turn", _turning(graph(bare)), [(name, _turning(each)) for name, each in graphs]


def where_a_blank_comes_first() -> Iterator[tuple[str, Work, list[tuple[str, Work]]]]:
    """The same for recoveries; the bare model is asked once more."""
    blank_first, answering = BlankFirst(), FastChatModel()
    ours, once_more = RetryingChatModel(blank_first), _asking(answering)
    chains = [
        (OURS, ours),
        ("raising chain, with_retry", with_retry(raising(blank_first))),
        (
            "raising chain, with_fallbacks",
            raising(blank_first).with_fallbacks([raising(blank_first)]),
        ),
    ]
    yield (
        "invoke after a blank",
        _both(_asking(answering), once_more),
        [(name, _asking(chain)) for name, chain in chains],
    )
    agents = [
        (OURS, agent(ours)),
        ("empty-response middleware", agent(blank_first, RetryEmptyMiddleware())),
    ]
    yield (
        "agent turn after a blank",
        _both(_turning(agent(answering)), once_more),
        [(name, _turning(each)) for name, each in agents],
    )
    graphs = [(OURS, graph(ours)), ("LangGraph loop", graph(blank_first, loop=True))]
    yield (
        "graph turn after a blank",
        _both(_turning(graph(answering)), once_more),
        [(name, _turning(each)) for name, each in graphs],
    )


def _is_blank(message: Any) -> bool:
    return not (message.text or message.tool_calls)


def _raise_on_blank(message: AIMessage) -> AIMessage:
    if _is_blank(message):
        raise BlankError
    return message


def _asking(runnable: Any) -> Work:
    return lambda: runnable.invoke("Hi")


def _reading(runnable: Any) -> Work:
    return lambda: sum(1 for _ in runnable.stream("Hi"))


def _turning(runnable: Any) -> Work:
    return lambda: runnable.invoke(TURN)


def _both(first: Work, second: Work) -> Work:
    return lambda: (first(), second())


def main() -> None:
    """Measure all ways."""
    seconds = seconds_of_command_line(__doc__)
    noise = noise_of_machine(seconds)
    cases = [
        (group, name, bare, work)
        for group, bare, ways in [*where_no_blank_comes(), *where_a_blank_comes_first()]
        for name, work in ways
    ]
    rows = [
        row_of(group, name, ratio(bare, work, seconds=seconds))
        for group, name, bare, work in progress(cases)
    ]
    report("peers", "CPU time, each way / the bare model", rows, seconds=seconds, noise=noise)


if __name__ == "__main__":
    main()
