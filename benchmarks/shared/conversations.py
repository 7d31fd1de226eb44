"""What the real model is asked, and how: ends of agents' tool chains; as a control, plain talk.

A first look showed that this model falls silent after two or more turns of calls and seldom after
one, so most chains were given two or more. No conversation was dropped or changed for what the
model said to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool


@dataclass(frozen=True)
class Conversation:
    """A conversation; it ends with the results of calls, if there are any, else with the user."""

    opening: tuple[BaseMessage, ...]
    turns: tuple[tuple[tuple[str, str], ...], ...] = ()
    """The assistant's turns: what each called, and what came of it."""

    @property
    def messages(self) -> list[BaseMessage]:
        """All of it."""
        messages = list(self.opening)
        for turn, calls in enumerate(self.turns):
            ids = [f"call-{turn}-{position}" for position in range(len(calls))]
            asked = [
                {"name": name, "args": {}, "id": id_}
                for (name, _), id_ in zip(calls, ids, strict=True)
            ]
            messages.append(AIMessage("", tool_calls=asked))
            messages += [
                ToolMessage(result, tool_call_id=id_, name=name)
                for (name, result), id_ in zip(calls, ids, strict=True)
            ]
        return messages

    @property
    def tools(self) -> dict[str, str]:
        """The tools called, and what they bring."""
        return {name: result for turn in self.turns for name, result in turn}

    @property
    def bound(self) -> dict[str, Any]:
        """Call arguments that bind the tools, if there are any."""
        tools = [
            {"type": "function", "function": {"name": name, "description": name, **NO_PARAMETERS}}
            for name in self.tools
        ]
        return {"tools": tools} if tools else {}


def _chain(request: str, *turns: str, system: str | None = None) -> Conversation:
    """Calls are written `tool=result`, those of one turn joined by ` & `."""
    opening = (*([SystemMessage(system)] if system else []), HumanMessage(request))
    calls = tuple(
        tuple((name, result) for name, _, result in (c.partition("=") for c in turn.split(" & ")))
        for turn in turns
    )
    return Conversation(opening, calls)


HELPFUL = "You are a helpful assistant."
NO_PARAMETERS: dict[str, Any] = {"parameters": {"type": "object", "properties": {}}}

CONVERSATIONS = (
    # A side effect is done.
    _chain("Email Anna that we meet at three.", "find_contact=anna@x.org", "send_email=sent"),
    _chain("Save the note 'buy milk'.", "save_note=done"),
    _chain("Delete old.txt, please.", "find=old.txt", "delete=ok", "sync=ok", system=HELPFUL),
    _chain("Turn off the lights and lock the door.", "lights=true", "lock=true"),
    _chain("Book a table for two tonight.", "tables=4, 9", "book=success", system=HELPFUL),
    _chain("Rename report.txt and make it read only.", "rename=done", "set_mode=done"),
    _chain("Cancel my order.", "order=number 81", "cancel=done", "refund=done", "mail=sent"),
    # The result is empty.
    _chain("Which of my invoices are overdue?", "find_customer=12", "find_invoices=[]"),
    _chain("Save the note 'buy milk' and show my others.", "save_note=done", "notes=[]"),
    _chain("Do I have meetings this week?", "calendar=[]", "shared=[]", system=HELPFUL),
    _chain("Search the logs for errors.", "search_logs=No matches found."),
    _chain("Find flights to Oslo under 50 euros.", "airport=OSL", 'flights={"found": []}'),
    _chain("Is there a file called todo.txt?", "folders=src & files=[]", "search=null"),
    # Facts are found.
    _chain("What is the weather in Oslo?", "find_place=59.9, 10.7", "weather=4 degrees, rain"),
    _chain("How many files are there?", "list_folders=src, tests", "count_files=12"),
    _chain("Has my parcel been sent?", "parcel=sent on Monday", system=HELPFUL),
    _chain("Who wrote Emma?", "search=3 results", "open_result=Emma is by Jane Austen."),
    _chain("What do apples and pears cost?", "prices=2.10 & pear_prices=2.60", "rate=1"),
    _chain("Where is the office, and is it open?", "address=5 Main Street", "hours=9 to 5"),
    # The results say nothing.
    _chain("Restart the web server.", "restart="),
    _chain("Log that the backup ran.", "open_log=", "append_log=", system=HELPFUL),
    _chain("Clean up the build folder, then run the tests.", "clean=", "run_tests="),
    _chain("Mute the channel and set my status to away.", "mute= & set_status="),
    _chain("Set the price of article 7 to 12 euros.", "article=7, 10 euros", "set_price="),
    # No tool.
    _chain("What is the capital of France?"),
    _chain("Write a haiku about the sea."),
    _chain("How do I boil an egg?", system=HELPFUL),
    Conversation(
        (
            HumanMessage("I need a name for my cat."),
            AIMessage("How about Felix?"),
            HumanMessage("And another one?"),
        ),
    ),
)


def invoke(model: Any, conversation: Conversation) -> AIMessage:
    """Ask for a whole reply."""
    reply: AIMessage = model.invoke(conversation.messages, **conversation.bound)
    return reply


def stream(model: Any, conversation: Conversation) -> AIMessage:
    """Ask for a stream, and add it up."""
    reply: AIMessage = reduce(add, model.stream(conversation.messages, **conversation.bound))
    return reply


def run_agent(model: Any, conversation: Conversation) -> AIMessage:
    """Run an agent whose tools bring the conversation's results, up to its last turn."""
    given = conversation.messages[len(conversation.opening) :]
    calls = [message for message in given if isinstance(message, AIMessage)]

    @wrap_model_call
    def put_in_calls(request: Any, handler: Any) -> Any:
        made = sum(bool(getattr(message, "tool_calls", ())) for message in request.messages)
        return calls[made] if made < len(calls) else handler(request)

    tools = [
        StructuredTool.from_function(lambda result=result: result, name=name, description=name)
        for name, result in conversation.tools.items()
    ]
    agent = create_agent(model, tools, middleware=[put_in_calls])
    last: AIMessage = agent.invoke({"messages": list(conversation.opening)})["messages"][-1]
    return last


WAYS = {"invoke": invoke, "stream": stream, "agent": run_agent}
