"""What is built around a model: chains, agents, graphs and middlewares."""

from __future__ import annotations

import asyncio
import importlib
import warnings
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.tools import tool
from pydantic import BaseModel

from side_by_side import small_models as small
from side_by_side.integrations import anthropic, openai, responses
from side_by_side.listening import Recorder, Tracer
from side_by_side.rows import FILTERS, PROFILE, needs, row
from side_by_side.small_models import always, call
from side_by_side.uses import error_of
from wire.turns import HELLO, Turn, calls


def part(module: str, *names: str) -> Any:
    """What a module of LangChain holds, in the first release that has it; None if none has."""
    for place in (module, module.replace("langchain_classic", "langchain")):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = importlib.import_module(place)
            for name in names:
                found = getattr(found, name)
        except (ImportError, AttributeError):
            continue
        return found
    return None


pytestmark = FILTERS
EXECUTOR = needs(part("langchain_classic.agents", "AgentExecutor"), "AgentExecutor")
LLM_CHAIN = needs(part("langchain_classic.chains", "LLMChain"), "LLMChain")
GRAPH_AGENT = needs(part("langgraph.prebuilt", "create_react_agent"), "create_react_agent")
CREATE_AGENT = needs(part("langchain.agents", "create_agent"), "create_agent")


class Answer(BaseModel):
    """The answer."""

    text: str


@tool
def look_up(key: str) -> str:
    """Look up a value."""
    return f"{key} is 42"


@tool
def forget(key: str) -> str:
    """Forget a value."""
    return f"{key} is gone"


def acting(messages: list[Any]) -> Any:
    """Calls a tool, then answers in two pieces."""
    return ["a is", " 42."] if messages[-1].type == "tool" else call("look_up", key="a")


def acting_by_function(messages: list[Any]) -> Any:
    if messages[-1].type == "function":
        return "a is 42."
    function = {"name": "look_up", "arguments": '{"key": "a"}'}
    return AIMessage("", additional_kwargs={"function_call": function})


def acting_by_text(messages: list[Any]) -> Any:
    if "Observation" in messages[-1].content:
        return ["I know.\nFinal", " Answer: a is 42."]
    return ["I look it up.\nAction: look_up\n", "Action Input: a"]


def structuring(messages: list[Any]) -> Any:
    done = messages[-1].type == "tool"
    return call("Answer", 2, text="a is 42.") if done else call("look_up", key="a")


def acting_then_structuring(messages: list[Any]) -> Any:
    return call("Answer", 2, text="42") if messages[-1].type == "ai" else acting(messages)


def acts(reply: Any, cls: Any = small.ScriptedChatModel, **kwargs: Any) -> Any:
    return lambda: cls(replies=reply, **small.fresh(kwargs))


# --- AgentExecutor and LLMChain ---


def tool_calling(model: Any, **kwargs: Any) -> Any:
    prompt = [("system", "Be brief."), ("human", "{input}"), ("placeholder", "{agent_scratchpad}")]
    return _executor("create_tool_calling_agent", model, prompt, **kwargs)


def openai_tools(model: Any, **kwargs: Any) -> Any:
    return _executor("create_openai_tools_agent", model, _PLACED, **kwargs)


def openai_functions(model: Any, **kwargs: Any) -> Any:
    return _executor("create_openai_functions_agent", model, _PLACED, **kwargs)


def react(model: Any, **kwargs: Any) -> Any:
    """By text, with stop sequences."""
    text = "Tools: {tools} {tool_names}\nQuestion: {input}\nThought:{agent_scratchpad}"
    return _executor("create_react_agent", model, PromptTemplate.from_template(text), **kwargs)


_PLACED = [("human", "{input}"), MessagesPlaceholder("agent_scratchpad")]


def _executor(create: str, model: Any, prompt: Any, **kwargs: Any) -> Any:
    agents = part("langchain_classic.agents")
    if isinstance(prompt, list):
        prompt = ChatPromptTemplate.from_messages(prompt)
    agent = getattr(agents, create)(model, [look_up], prompt)
    return agents.AgentExecutor(agent=agent, tools=[look_up], **kwargs)


def executed(make: Any, **kwargs: Any) -> Any:
    """All ways to run an executor, with what handlers hear, tracers trace and events tell."""

    def use(model: Any) -> Any:
        recorder, tracer = Recorder(), Tracer()
        config = {"callbacks": [recorder, tracer]}
        prompt = {"input": "What is a?"}
        executor = make(model, return_intermediate_steps=True, **kwargs)
        came_out = [
            executor.invoke(prompt, config),
            asyncio.run(executor.ainvoke(prompt, config)),
            list(executor.stream(prompt, config)),
            *asyncio.run(_astreamed(executor, prompt)),
        ]
        assert came_out[0]["output"] == "a is 42."
        return came_out, recorder.heard, tracer.runs

    return use


async def _astreamed(runnable: Any, prompt: Any, **kwargs: Any) -> Any:
    return [
        [step async for step in runnable.astream(prompt, **kwargs)],
        [event async for event in runnable.astream_events(prompt, version="v2")],
    ]


def llm_chain(model: Any) -> Any:
    chains = part("langchain_classic.chains")
    prompt = ChatPromptTemplate.from_messages([("human", "{question}")])
    chain = chains.LLMChain(llm=model, prompt=prompt)
    recorder = Recorder()
    config = {"callbacks": [recorder]}
    return [
        chain.invoke({"question": "Hi"}, config),
        asyncio.run(chain.ainvoke({"question": "Hi"}, config)),
        chain.generate([{"question": "a"}, {"question": "b"}]),
        list(chain.stream({"question": "Hi"}, config)),
        recorder.heard,
    ]


# --- graphs ---


def ran(make: Any) -> Any:
    """All ways to run a graph: state, updates, messages as they come, events, traces."""

    def use(model: Any) -> Any:
        graph = make(model)
        recorder, tracer = Recorder(), Tracer()
        config: Any = {"callbacks": [recorder, tracer]}
        return [
            graph.invoke(QUESTION, config),
            asyncio.run(graph.ainvoke(QUESTION, config)),
            list(graph.stream(QUESTION, stream_mode=MODES)),
            asyncio.run(_astreamed(graph, QUESTION, stream_mode=MODES)),
            asyncio.run(_typed(graph, QUESTION)),
            recorder.heard,
            tracer.runs,
        ]

    return use


def ran_briefly(make: Any) -> Any:
    """The same without traces, events and typed events."""

    def use(model: Any) -> Any:
        graph = make(model)
        return [
            list(graph.stream(QUESTION, stream_mode=MODES)),
            asyncio.run(graph.ainvoke(QUESTION)),
        ]

    return use


QUESTION = {"messages": [HumanMessage("What is a?", id="question")]}
MODES = ["values", "updates", "messages"]


async def _typed(graph: Any, inputs: Any) -> Any:
    """Typed event streams, where this release has them."""
    if not hasattr(graph, "stream_events"):
        return None
    stream = await graph.astream_events(inputs, version="v3")
    messages = [[event async for event in message] async for message in stream.messages]
    return messages, await stream.output()


def graph_agent(**kwargs: Any) -> Any:
    create: Any = part("langgraph.prebuilt", "create_react_agent")
    return lambda model: create(model, [look_up], **kwargs)


def graph_agent_bound(model: Any) -> Any:
    """The model with its tools bound beforehand."""
    create = part("langgraph.prebuilt", "create_react_agent")
    return create(model.bind_tools([look_up]), [look_up])


def own_graph(model: Any) -> Any:
    """A node that calls the model without passing its config on."""
    state = importlib.import_module("langgraph.graph")
    graph = state.StateGraph(state.MessagesState)
    graph.add_node("model", lambda values: {"messages": [model.invoke(values["messages"])]})
    graph.add_edge(state.START, "model")
    return graph.compile()


def agent(*, tools: Any = (look_up,), **kwargs: Any) -> Any:
    def make(model: Any) -> Any:
        made = {
            key: [item(model) if callable(item) else item for item in value]
            if key == "middleware"
            else value
            for key, value in kwargs.items()
        }
        return part("langchain.agents", "create_agent")(model, list(tools), **made)

    return make


def deep_agent(model: Any) -> Any:
    deepagents = pytest.importorskip("deepagents")
    return deepagents.create_deep_agent(model=model, tools=[look_up], system_prompt="Be brief.")


def strategy(name: str, **kwargs: Any) -> Any:
    kind = part("langchain.agents.structured_output", name)
    return kind and kind(Answer, **kwargs)


def middleware(name: str, *args: Any, **kwargs: Any) -> Any:
    """Makes a middleware for the model under test; `model` stands for that one."""

    def make(model: Any) -> Any:
        kind = part("langchain.agents.middleware", name)
        if kind is None:
            pytest.skip(f"this release of LangChain has no {name}")

        def filled(value: Any) -> Any:
            return model if value is MODEL else value

        return kind(*map(filled, args), **{key: filled(value) for key, value in kwargs.items()})

    return make


MODEL = object()


def prompt_caching(model: Any) -> Any:
    kind = part("langchain_anthropic.middleware", "AnthropicPromptCachingMiddleware")
    if kind is None:
        pytest.skip("this release of LangChain has no AnthropicPromptCachingMiddleware")
    return kind(unsupported_model_behavior="raise")


def another_model(model: Any) -> Any:
    """Picks the model, its tools and settings when the call is made."""
    first = acts(acting)()

    def pick(request: Any, handler: Any) -> Any:
        return handler(request.override(model=model, model_settings={"temperature": 0.25}))

    async def apick(request: Any, handler: Any) -> Any:
        return await handler(request.override(model=model, model_settings={"temperature": 0.25}))

    base = part("langchain.agents.middleware", "AgentMiddleware")
    kind = type(
        "Picking",
        (base,),
        {
            "wrap_model_call": lambda self, request, handler: pick(request, handler),
            "awrap_model_call": lambda self, request, handler: apick(request, handler),
        },
    )
    return part("langchain.agents", "create_agent")(first, [look_up], middleware=[kind()])


def summarized(messages: list[Any]) -> Any:
    return "A summary." if len(messages) == 1 and "ummar" in str(messages[0].content) else "Hello."


def summarizing(model: Any) -> Any:
    """The middleware asks the model, and looks at its kind and its profile."""
    agent_of = agent(
        tools=(), middleware=[middleware("SummarizationMiddleware", model=MODEL, **_trigger(3))]
    )(model)
    history = [HumanMessage("a " * 50, id="1"), AIMessage("b", id="2")] * 3
    return [
        agent_of.invoke({"messages": [*history, HumanMessage("And?", id="7")]}),
        asyncio.run(agent_of.ainvoke({"messages": [*history, HumanMessage("And?", id="7")]})),
    ]


def _trigger(messages: int) -> dict[str, Any]:
    kind: Any = part("langchain.agents.middleware", "SummarizationMiddleware")
    newer = kind and "trigger" in kind.__init__.__code__.co_varnames
    if newer:
        return {"trigger": ("messages", messages), "keep": ("messages", 1)}
    return {"max_tokens_before_summary": 10, "messages_to_keep": 1}


def falling_back(model: Any) -> Any:
    """From a broken model to the one under test."""
    broken = always(ConnectionError("lost"))()
    graph = part("langchain.agents", "create_agent")(
        broken, [look_up], middleware=[middleware("ModelFallbackMiddleware", MODEL)(model)]
    )
    return graph.invoke({"messages": [HumanMessage("a?", id="1")]})


def streamed(make: Any) -> Any:
    """An agent's messages as they come, and its state in the end."""

    def use(model: Any) -> Any:
        return list(make(model).stream(QUESTION, stream_mode=MODES))

    return use


def stepped(make: Any) -> Any:
    return lambda model: list(make(model).stream({"input": "What is a?"}))


def detected(model: Any) -> Any:
    """Which strategy the factory picks for a bare schema."""
    factory = importlib.import_module("langchain.agents.factory")
    return [
        getattr(factory, name)(model)
        for name in ("_supports_provider_strategy", "_is_openai_compatible_model")
        if hasattr(factory, name)
    ]


def selecting(messages: list[Any]) -> Any:
    if "tool" in str(messages[0].content).lower() and messages[0].type == "system":
        return call("ToolSelectionResponse", tools=["look_up"])
    return acting(messages)


LONG = [
    HumanMessage("a?", id="1"),
    *(
        message
        for number in range(5)
        for message in (
            AIMessage(
                "",
                id=f"a{number}",
                tool_calls=[{"name": "look_up", "args": {"key": "a"}, "id": f"c{number}"}],
            ),
            ToolMessage("a is 42 " * 20, tool_call_id=f"c{number}", id=f"t{number}"),
        )
    ),
]


def edited(model: Any) -> Any:
    """Old tool results are cleared; tokens are counted by the model."""
    edits = part("langchain.agents.middleware", "ClearToolUsesEdit")
    if edits is None:
        pytest.skip("this release of LangChain has no ClearToolUsesEdit")
    graph = agent(
        middleware=[
            middleware(
                "ContextEditingMiddleware",
                edits=[edits(trigger=100, keep=1)],
                token_count_method="model",  # noqa: S106 -- no password
            )
        ]
    )(model)
    return graph.invoke({"messages": LONG}), asyncio.run(graph.ainvoke({"messages": LONG}))


def count_words(text: str) -> list[int]:
    return [len(word) for word in text.split()]


CHAINS = [
    row("LLMChain", always(), llm_chain, marks=LLM_CHAIN),
]
EXECUTORS = [
    row(f"{name}{ways}", acts(reply), executed(make, **kwargs), marks=EXECUTOR)
    for name, make, reply in (
        ("tool-calling", tool_calling, acting),
        ("openai-tools", openai_tools, acting),
        ("openai-functions", openai_functions, acting_by_function),
        ("text ReAct", react, acting_by_text),
    )
    for ways, kwargs in ((" streaming", {}), (" whole", {"stream_runnable": False}))
] + [
    row(
        "a model that can't stream",
        acts(acting, small.Whole),
        executed(tool_calling),
        marks=EXECUTOR,
    ),
]
GRAPHS = [
    row("create_react_agent", acts(acting), ran(graph_agent()), marks=GRAPH_AGENT),
    row(
        "create_react_agent of a bound model",
        acts(acting),
        ran(graph_agent_bound),
        marks=GRAPH_AGENT,
    ),
    row(
        "create_react_agent with a response format",
        acts(acting_then_structuring),
        ran(graph_agent(response_format=Answer)),
        marks=GRAPH_AGENT,
    ),
    row("a graph of one's own", always(), ran(own_graph), marks=GRAPH_AGENT),
    row(
        "a graph of a model that can't stream",
        always(cls=small.Whole),
        ran(own_graph),
        marks=GRAPH_AGENT,
    ),
    row(
        "a graph of a model that reports tokens",
        always(cls=small.Reporting),
        ran(own_graph),
        marks=GRAPH_AGENT,
    ),
    row(
        "a graph of a model with native events",
        always(cls=small.Native),
        ran(own_graph),
        marks=GRAPH_AGENT,
    ),
]
AGENTS = [
    row("create_agent", acts(acting), ran(agent()), marks=CREATE_AGENT),
    row(
        "with a system prompt",
        acts(acting),
        ran_briefly(agent(system_prompt="Be brief.")),
        marks=CREATE_AGENT,
    ),
    row("without tools", always(), ran_briefly(agent(tools=())), marks=CREATE_AGENT),
    row(
        "ToolStrategy",
        acts(structuring),
        ran(agent(response_format=strategy("ToolStrategy"))),
        marks=CREATE_AGENT,
    ),
    row(
        "a bare schema",
        acts(structuring),
        ran_briefly(agent(response_format=Answer)),
        marks=CREATE_AGENT,
    ),
    row("a model picked when called", acts(acting), ran(another_model), marks=CREATE_AGENT),
    row("deepagents", acts(acting), ran_briefly(deep_agent), marks=CREATE_AGENT),
    row("SummarizationMiddleware", acts(summarized), summarizing, marks=CREATE_AGENT),
    row("ModelFallbackMiddleware", acts(acting), falling_back, marks=CREATE_AGENT),
    row(
        "ModelFallbackMiddleware not needed",
        acts(acting),
        ran_briefly(agent(middleware=[middleware("ModelFallbackMiddleware", MODEL)])),
        marks=CREATE_AGENT,
    ),
    row(
        "LLMToolSelectorMiddleware",
        acts(selecting),
        ran_briefly(
            agent(
                tools=(look_up, forget),
                middleware=[middleware("LLMToolSelectorMiddleware", model=MODEL)],
            )
        ),
        marks=CREATE_AGENT,
    ),
    row(
        "LLMToolSelectorMiddleware of the agent's model",
        acts(selecting),
        ran_briefly(
            agent(
                tools=(look_up, forget),
                middleware=[middleware("LLMToolSelectorMiddleware", max_tools=1)],
            )
        ),
        marks=CREATE_AGENT,
    ),
    row(
        "ContextEditingMiddleware",
        acts(acting, custom_get_token_ids=count_words),
        edited,
        marks=CREATE_AGENT,
    ),
    row(
        "ModelRetryMiddleware",
        acts(acting),
        ran_briefly(agent(middleware=[middleware("ModelRetryMiddleware", max_retries=1)])),
        marks=CREATE_AGENT,
    ),
    row(
        "TodoListMiddleware",
        acts(acting),
        ran_briefly(agent(middleware=[middleware("TodoListMiddleware")])),
        marks=CREATE_AGENT,
    ),
    row(
        "ModelCallLimitMiddleware",
        acts(acting),
        ran_briefly(agent(middleware=[middleware("ModelCallLimitMiddleware", run_limit=5)])),
        marks=CREATE_AGENT,
    ),
    row(
        "LLMToolEmulator",
        acts(acting),
        ran_briefly(agent(middleware=[middleware("LLMToolEmulator", model=MODEL)])),
        marks=CREATE_AGENT,
    ),
]
LOOK_UP, ANSWER = calls("look_up", key="a"), calls("Answer", text="42")
JSON = Turn('{"text": "42"}')
GPT, CLAUDE = {"model": "gpt-5-mini"}, {"model": "claude-sonnet-4-5"}
OVER_THE_WIRE = (
    [
        row(
            "AgentExecutor of ChatOpenAI",
            openai(),
            stepped(tool_calling),
            LOOK_UP,
            HELLO,
            marks=EXECUTOR,
        ),
        row(
            "AgentExecutor of ChatAnthropic",
            anthropic(),
            stepped(tool_calling),
            LOOK_UP,
            HELLO,
            marks=EXECUTOR,
        ),
        row(
            "openai-functions of ChatOpenAI",
            openai(),
            stepped(openai_functions),
            LOOK_UP,
            HELLO,
            marks=EXECUTOR,
        ),
        row(
            "create_react_agent of ChatOpenAI",
            openai(),
            streamed(graph_agent()),
            LOOK_UP,
            HELLO,
            marks=GRAPH_AGENT,
        ),
        row(
            "create_react_agent of ChatAnthropic",
            anthropic(),
            streamed(graph_agent()),
            LOOK_UP,
            HELLO,
            marks=GRAPH_AGENT,
        ),
    ]
    + [
        row(
            f"{name} of {model}",
            make(**kwargs),
            use,
            *says,
            # Before, the factory did not know which providers structure output themselves.
            marks=[CREATE_AGENT, *([PROFILE] if name == "ProviderStrategy" else [])],
        )
        for model, make, kwargs in (
            ("ChatOpenAI", openai, GPT),
            ("Responses", responses, GPT),
            ("ChatAnthropic", anthropic, CLAUDE),
            ("a ChatOpenAI unknown to LangChain", openai, {}),
        )
        for name, use, says in (
            ("create_agent", streamed(agent()), (LOOK_UP, HELLO)),
            (
                "ToolStrategy",
                streamed(agent(response_format=strategy("ToolStrategy"))),
                (LOOK_UP, ANSWER),
            ),
            (
                "ProviderStrategy",
                streamed(agent(response_format=strategy("ProviderStrategy"))),
                (LOOK_UP, JSON),
            ),
            ("what is detected", detected, ()),
        )
    ]
    + [
        row(
            "a bare schema of ChatOpenAI",
            openai(**GPT),
            streamed(agent(response_format=Answer)),
            LOOK_UP,
            JSON,
            marks=CREATE_AGENT,
        ),
        row(
            "a bare schema of an unknown ChatOpenAI",
            openai(),
            streamed(agent(response_format=Answer)),
            LOOK_UP,
            ANSWER,
            marks=CREATE_AGENT,
        ),
        row(
            "AnthropicPromptCachingMiddleware",
            anthropic(),
            streamed(agent(middleware=[prompt_caching], system_prompt="Be brief.")),
            LOOK_UP,
            HELLO,
            marks=CREATE_AGENT,
        ),
        row(
            "AnthropicPromptCachingMiddleware of another's",
            openai(),
            lambda model: str(error_of(streamed(agent(middleware=[prompt_caching])), model)).split(
                "'"
            )[0],
            marks=CREATE_AGENT,
        ),
        row(
            "SummarizationMiddleware of ChatAnthropic",
            anthropic(),
            summarizing,
            HELLO,
            marks=CREATE_AGENT,
        ),
        *(
            row(
                f"deepagents of {name}",
                make,
                streamed(deep_agent),
                LOOK_UP,
                HELLO,
                marks=CREATE_AGENT,
            )
            for name, make in (("ChatOpenAI", openai()), ("ChatAnthropic", anthropic()))
        ),
        row(
            "ModelFallbackMiddleware of ChatAnthropic",
            anthropic(),
            falling_back,
            HELLO,
            marks=CREATE_AGENT,
        ),
    ]
)


@pytest.mark.parametrize("row", CHAINS)
def test_chains(row):
    row.check()


@pytest.mark.parametrize("row", EXECUTORS)
def test_agent_executor(row):
    row.check()


@pytest.mark.parametrize("row", GRAPHS)
def test_graphs(row):
    row.check()


@pytest.mark.parametrize("row", AGENTS)
def test_create_agent(row):
    row.check()


@pytest.mark.parametrize("row", OVER_THE_WIRE)
def test_over_the_wire(row, server):
    row.check(server)
