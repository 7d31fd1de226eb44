"""What a real language model says to each wording of the nudge.

    make bench-wording

Each conversation of `CHOOSING` is asked once for each seed; where the reply is blank it is asked
again, once, with each wording at the end, with the same new seed. A wording is better the fewer
replies are blank and the fewer talk about the failure (a stated rule, printed with the figures). As
a sign of sense, replies are counted that take up a word of the request or of a result. The model is
the one of `make bench-real`, and what is said there of its figures is true of these.
"""

from __future__ import annotations

import argparse
import re

from langchain_core.messages import HumanMessage
from rich.progress import track

from shared.conversations import CHOOSING, Conversation
from shared.real_model import (
    TALKS_OF_FAILURE,
    SeedingTransport,
    client,
    mean,
    server,
    show_and_save,
    told,
    tools_of,
)
from shared.wordings import WORDINGS

Texts = list[list[str]]
"""By conversation."""
SHOWN = 3
"""Replies of each wording that are printed."""


def takes_up(reply: str, conversation: Conversation) -> bool:
    """Whether a reply has a word of four letters or a number of the request or a result."""
    given = [str(message.content) for message in conversation.messages if message.content]
    words = set(re.findall(r"[^\W\d_]{4,}|\d+", " ".join(given).lower()))
    return not words.isdisjoint(re.findall(r"[^\W\d_]{4,}|\d+", reply.lower()))


def measure(address: str, seeds: int, kinds: list[str]) -> tuple[int, dict[tuple[str, str], Texts]]:
    """First calls, and the replies of each wording by conversation."""
    transport = SeedingTransport()
    bare = client(address, transport)
    replies: dict[tuple[str, str], Texts] = {
        (kind, name): [[] for _ in CHOOSING] for kind in kinds for name in WORDINGS[kind]
    }
    cases = [(seed, place) for seed in range(seeds) for place in range(len(CHOOSING))]
    for seed, place in track(cases, "Asking"):
        conversation = CHOOSING[place]
        bound = tools_of(conversation)
        transport.begin(seed * len(CHOOSING) + place)
        if str(bare.invoke(conversation.messages, **bound).content).strip():
            continue
        for (kind, name), texts in replies.items():
            transport.attempt = 1  # so each wording has the same draw
            nudged = [*conversation.messages, HumanMessage(WORDINGS[kind][name])]
            texts[place].append(str(bare.invoke(nudged, **bound).content).strip())
    return len(cases), replies


def main() -> None:
    """Measure, save and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=4, help="for each conversation, default 4")
    parser.add_argument("--kinds", nargs="*", default=list(WORDINGS), help="of wordings")
    options = parser.parse_args()
    with server() as address:
        cases, replies = measure(address, options.seeds, options.kinds)
    tables: dict[str, tuple[list[str], list[list[str]]]] = {}
    data = []
    for (kind, name), texts in replies.items():
        said = [[text for text in of_one if text] for of_one in texts]
        blank = [[float(not text) for text in of_one] for of_one in texts]
        failure = [[float(bool(TALKS_OF_FAILURE.search(t))) for t in of_one] for of_one in said]
        apt = [
            [float(takes_up(text, conversation)) for text in of_one]
            for conversation, of_one in zip(CHOOSING, said, strict=True)
        ]
        wording = WORDINGS[kind][name]
        title = f"{kind}: {sum(map(len, texts))} blanks of {cases} calls, asked again"
        headings = ["wording", "letters", "still blank", "talks of failure", "takes up", "text"]
        row = [name, str(len(wording)), told(blank), told(failure), f"{mean(apt):.0%}", wording]
        tables.setdefault(title, (headings, []))[1].append(row)
        flat = [text for of_one in said for text in of_one]
        talk = [text for text in flat if TALKS_OF_FAILURE.search(text)]
        data.append(
            {
                **dict(zip(headings, row, strict=True)),
                "kind": kind,
                "examples": flat[:SHOWN],
                "examples_of_talk_about_failure": talk[:SHOWN],
            }
        )
    notes = [f"Talks of failure: {TALKS_OF_FAILURE.pattern}"]
    show_and_save("real_wording", tables, notes, {"seeds": options.seeds, "wordings": data})


if __name__ == "__main__":
    main()
