"""What the real model is asked: ends of tool chains as agents have them; as a control, plain talk.

The wording is chosen on `CHOOSING` and measured on `MEASURED`, which has none of them. A first look
showed that this model falls silent after two or more turns of calls and seldom after one, so most
chains were given two or more. No conversation was dropped or changed for what the model said to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage


@dataclass(frozen=True)
class Conversation:
    """A conversation; it ends with the results of calls, if there are any, else with the user."""

    group: str
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


def _chain(group: str, request: str, *turns: str, system: str | None = None) -> Conversation:
    """Calls are written `tool=result`, those of one turn joined by ` & `."""
    opening = (*([SystemMessage(system)] if system else []), HumanMessage(request))
    calls = tuple(
        tuple((name, result) for name, _, result in (c.partition("=") for c in turn.split(" & ")))
        for turn in turns
    )
    return Conversation(group, opening, calls)


HELPFUL = "You are a helpful assistant."
DONE, NOTHING, FACTS, SILENT, TALK = (
    "side effect done",
    "empty result",
    "facts found",
    "no content",
    "no tool",
)

MEASURED = (
    _chain(DONE, "Email Anna that we meet at three.", "find_contact=anna@x.org", "send_email=sent"),
    _chain(DONE, "Save the note 'buy milk'.", "save_note=done"),
    _chain(DONE, "Delete old.txt, please.", "find=old.txt", "delete=ok", "sync=ok", system=HELPFUL),
    _chain(DONE, "Turn off the lights and lock the door.", "lights=true", "lock=true"),
    _chain(DONE, "Book a table for two tonight.", "tables=4, 9", "book=success", system=HELPFUL),
    _chain(DONE, "Rename report.txt and make it read only.", "rename=done", "set_mode=done"),
    _chain(DONE, "Cancel my order.", "order=number 81", "cancel=done", "refund=done", "mail=sent"),
    _chain(NOTHING, "Which of my invoices are overdue?", "find_customer=12", "find_invoices=[]"),
    _chain(NOTHING, "Save the note 'buy milk' and show my others.", "save_note=done", "notes=[]"),
    _chain(NOTHING, "Do I have meetings this week?", "calendar=[]", "shared=[]", system=HELPFUL),
    _chain(NOTHING, "Search the logs for errors.", "search_logs=No matches found."),
    _chain(NOTHING, "Find flights to Oslo under 50 euros.", "airport=OSL", 'flights={"found": []}'),
    _chain(NOTHING, "Is there a file called todo.txt?", "folders=src & files=[]", "search=null"),
    _chain(
        FACTS, "What is the weather in Oslo?", "find_place=59.9, 10.7", "weather=4 degrees, rain"
    ),
    _chain(FACTS, "How many files are there?", "list_folders=src, tests", "count_files=12"),
    _chain(FACTS, "Has my parcel been sent?", "parcel=sent on Monday", system=HELPFUL),
    _chain(FACTS, "Who wrote Emma?", "search=3 results", "open_result=Emma is by Jane Austen."),
    _chain(FACTS, "What do apples and pears cost?", "prices=2.10 & pear_prices=2.60", "rate=1"),
    _chain(FACTS, "Where is the office, and is it open?", "address=5 Main Street", "hours=9 to 5"),
    _chain(SILENT, "Restart the web server.", "restart="),
    _chain(SILENT, "Log that the backup ran.", "open_log=", "append_log=", system=HELPFUL),
    _chain(SILENT, "Clean up the build folder, then run the tests.", "clean=", "run_tests="),
    _chain(SILENT, "Mute the channel and set my status to away.", "mute= & set_status="),
    _chain(SILENT, "Set the price of article 7 to 12 euros.", "article=7, 10 euros", "set_price="),
    _chain(TALK, "What is the capital of France?"),
    _chain(TALK, "Write a haiku about the sea."),
    _chain(TALK, "How do I boil an egg?", system=HELPFUL),
    Conversation(
        TALK,
        (
            HumanMessage("I need a name for my cat."),
            AIMessage("How about Felix?"),
            HumanMessage("And another one?"),
        ),
    ),
)

CHOOSING = (
    _chain(DONE, "Tell Ben that I am late.", "find_user=ben, 14", "send_message=sent"),
    _chain(DONE, "Add eggs to my list.", "get_list=bread", "add_item=done", system=HELPFUL),
    _chain(DONE, "Move the photos to the archive.", "find_photos=31", "move=ok", "check=ok"),
    _chain(DONE, "Close ticket 12.", "get_ticket=open", "close_ticket=closed"),
    _chain(NOTHING, "Are there new reviews?", "find_shop=8", "reviews=[]"),
    _chain(NOTHING, "Remind me at six, and list my reminders.", "remind=done", "reminders=[]"),
    _chain(NOTHING, "Any trains to Bonn tonight?", "station=Bonn", "trains=[]", system=HELPFUL),
    _chain(NOTHING, "Find duplicates in my contacts.", "load_contacts=done", "compare=none"),
    _chain(FACTS, "How tall is the tower?", "search=2 results", "open_result=It is 324 m tall."),
    _chain(FACTS, "Who is on call?", "schedule=week 40", "on_call=Maria", system=HELPFUL),
    _chain(FACTS, "How much disk is left?", "disks=sda", "usage=81 % used", "free=40 GB"),
    _chain(FACTS, "When does the shop open?", "shop=number 5", "opening_hours=8 to 18"),
    _chain(SILENT, "Empty the bin and restart.", "empty_bin=", "restart="),
    _chain(SILENT, "Stop the timer and save it.", "stop_timer=", "save=", system=HELPFUL),
    _chain(SILENT, "Enable the alarm.", "get_alarm=off", "set_alarm="),
    _chain(SILENT, "Update all packages.", "refresh=", "update=", "clean="),
)
