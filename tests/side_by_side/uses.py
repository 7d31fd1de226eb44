"""What users do with a chat model."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

from side_by_side.listening import AsyncRecorder, Recorder, Tracer

WAYS = ("invoke", "ainvoke", "stream", "astream")


def four_ways(model: Any, prompt: Any = "Hi", config: Any = None, **kwargs: Any) -> Any:
    """All ways to call it: what comes out, what handlers hear meanwhile, what is traced."""
    told = {way: told_by(way, model, prompt, config, **kwargs) for way in WAYS}
    assert any(all(item[0] != "raised" for item in heard) for heard, _ in told.values()), told
    return told


def told_by(way: str, model: Any, prompt: Any = "Hi", config: Any = None, **kwargs: Any) -> Any:
    recorder, tracer = Recorder(), Tracer()
    config = dict(config or {})
    config["callbacks"] = [*config.get("callbacks", ()), recorder, tracer]
    _read(way, recorder.heard, model, prompt, config=config, **kwargs)
    return recorder.heard, tracer.runs


def plainly(model: Any, prompt: Any = "Hi", **kwargs: Any) -> Any:
    """All ways to call it, with no handler but the model's own; what these have heard, too."""
    came_out: list[Any] = []
    for way in WAYS:
        _read(way, came_out, model, prompt, **kwargs)
    assert any(name == "came out" for name, _ in came_out), came_out
    own = getattr(model, "callbacks", None) or ()
    return came_out, [[handler.heard for handler in own], captured(plain_reads, model, prompt)]


def plain_reads(model: Any, prompt: Any = "Hi") -> Any:
    for way in WAYS:
        _read(way, [], model, prompt)


def _read(way: str, into: list[Any], model: Any, *args: Any, **kwargs: Any) -> None:
    async def read() -> None:
        if way == "ainvoke":
            into.append(("came out", await model.ainvoke(*args, **kwargs)))
        else:
            async for chunk in model.astream(*args, **kwargs):
                into.append(("came out", chunk))

    try:
        if way == "invoke":
            into.append(("came out", model.invoke(*args, **kwargs)))
        elif way == "stream":
            for chunk in model.stream(*args, **kwargs):
                into.append(("came out", chunk))
        else:
            asyncio.run(read())
    except Exception as error:
        into.append(("raised", error))


def captured(use: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, str]:
    """What comes out, and what is printed."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        result = use(*args, **kwargs)
    return result, printed.getvalue()


def error_of(use: Callable[..., Any], *args: Any, **kwargs: Any) -> Exception:
    """The exception, which must come."""
    try:
        result = use(*args, **kwargs)
        result = list(result) if isinstance(result, Iterator) else result
    except Exception as error:
        return error
    raise AssertionError(f"no exception but {result!r}")


# --- one use a function, to be put together in tables ---


def invoke(model: Any) -> Any:
    return model.invoke("Hi")


def async_handlers(model: Any) -> Any:
    async def run() -> Any:
        invoked, streamed = AsyncRecorder(), AsyncRecorder()
        await model.ainvoke("Hi", {"callbacks": [invoked]})
        async for chunk in model.astream("Hi", {"callbacks": [streamed]}):
            streamed.heard.append(chunk)
        return invoked.heard, streamed.heard

    return asyncio.run(run())


def batches(model: Any) -> Any:
    config = {"max_concurrency": 1}
    many = ["a", "b", "c"]
    each = [{"tags": [tag], "max_concurrency": 1} for tag in many]
    return [
        model.batch(many, config),
        model.batch(many, each, return_exceptions=True),
        sorted(model.batch_as_completed(["a"] * 3), key=lambda item: item[0]),
        asyncio.run(_abatches(model)),
    ]


async def _abatches(model: Any) -> Any:
    completed = [item async for item in model.abatch_as_completed(["a"] * 3)]
    return await model.abatch(["a"] * 3), sorted(completed, key=lambda item: item[0])


def generations(model: Any) -> Any:
    """`generate` and `agenerate` with several prompts: the results, each with its runs."""
    from langchain_core.messages import HumanMessage, SystemMessage  # noqa: PLC0415
    from langchain_core.prompt_values import StringPromptValue  # noqa: PLC0415

    prompts = [[SystemMessage("Be brief."), HumanMessage("a")], [HumanMessage("b")]]
    values = [StringPromptValue(text="a"), StringPromptValue(text="b")]
    recorder, tracer = Recorder(), Tracer()
    handlers: Any = [recorder, tracer]
    for handler in handlers:  # else threads hand them the events of several prompts in any order
        handler.run_inline = True
    results = [
        model.generate(prompts, callbacks=handlers, tags=["t"], metadata={"m": 1}, run_name="R"),
        model.generate_prompt(values, stop=["END"], callbacks=handlers),
        asyncio.run(model.agenerate(prompts, callbacks=handlers)),
    ]
    by_run: dict[Any, list[Any]] = {}  # several prompts are asked at once
    for name, args, kwargs in recorder.heard:
        by_run.setdefault(kwargs["run_id"], []).append((name, args, kwargs))
    return results, [*by_run.values()], tracer.runs


def events_v1(model: Any) -> Any:
    return asyncio.run(_collect(model.astream_events("Hi", version="v1")))


def events_v2(model: Any) -> Any:
    return asyncio.run(_collect(model.astream_events("Hi", version="v2")))


def with_a_list(model: Any) -> Any:
    """The list of messages is the caller's, whatever the model does with its own."""
    from langchain_core.messages import HumanMessage  # noqa: PLC0415

    messages = [HumanMessage("Hi")]
    for way in WAYS:
        _read(way, [], model, messages)
    return messages


def transformed(model: Any) -> Any:
    """As a part of a stream of inputs, and of a list."""

    async def inputs() -> Any:
        yield "H"
        yield "i"

    return [
        list(model.transform(iter(["H", "i"]))),
        asyncio.run(_collect(model.atransform(inputs()))),
        model.map().invoke(["Hi"]),
    ]


def as_of_old(model: Any) -> Any:
    """The ways to call a model that LangChain 1 has no more."""
    from langchain_core.messages import HumanMessage  # noqa: PLC0415

    return [
        model([HumanMessage("Hi")]),
        model.predict("Hi"),
        model.predict_messages([HumanMessage("Hi")]),
        model.call_as_llm("Hi"),
        asyncio.run(model.apredict("Hi")),
        asyncio.run(model.apredict_messages([HumanMessage("Hi")])),
    ]


def log_patches(model: Any) -> Any:
    async def run() -> Any:
        patches = await _collect(model.astream_log("Hi", include_types=["chat_model"]))
        final = [run async for run in model.astream_log("Hi", diff=False)][-1]
        return [patch.ops for patch in patches], final.state

    return asyncio.run(run())


async def _collect(stream: Any) -> list[Any]:
    return [item async for item in stream]


def in_a_chain(model: Any) -> Any:
    """Between a prompt and a parser: pieces come as they come, and so do events by name."""
    from langchain_core.output_parsers import StrOutputParser  # noqa: PLC0415
    from langchain_core.prompts import ChatPromptTemplate  # noqa: PLC0415

    prompt = ChatPromptTemplate.from_messages([("system", "Be brief."), ("human", "{question}")])
    chain = prompt | model | StrOutputParser()
    name = type(model).__name__

    async def by_name() -> Any:
        events = chain.astream_events({"question": "Hi"}, version="v2", include_names=[name])
        by_name = await _collect(events)
        assert by_name
        events = chain.astream_events({"question": "Hi"}, version="v2", exclude_types=["prompt"])
        return by_name, await _collect(events)

    return four_ways(chain, {"question": "Hi"}), asyncio.run(by_name())
