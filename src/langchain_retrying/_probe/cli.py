"""The command line, `langchain-retrying`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The arguments without the program's name; None: those of the process.

    Returns:
        The exit code: 0; 1 if the run failed; 2 for what can't be used: a file, a model that is
        not known, packages that are missing; 130 after Ctrl-C.

    Raises:
        SystemExit: With 0 for `--help` and `--version`, with 2 for arguments that can't be used.

    """
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except ImportError as error:
        extra = f"pip install 'langchain-retrying[{arguments.command}]'"
        print(f"More packages are needed ({error}): {extra}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130  # what a shell reports of a program ended by Ctrl-C


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="langchain-retrying", description="Retries the empty completions of LangChain models."
    )
    parser.add_argument("--version", action="version", version=version("langchain-retrying"))
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    _add_demo(
        commands.add_parser(
            "demo",
            help="probe a model that is blank at times, on a server of its own",
            description="Ask a model that is blank at times, bare and wrapped in "
            "RetryingChatModel, in four ways. It is a server on this machine, so no API key and no "
            "network are needed.",
        )
    )
    _add_probe(
        commands.add_parser(
            "probe",
            help="find out how often your model is blank, and whether retries help",
            description="Ask a model, bare and wrapped in RetryingChatModel, and report how often "
            "its replies are empty, and what retries did and cost. Nothing is stored, and nothing "
            "of the content is printed.",
            epilog="Each retry is a request; what a provider's client repeats by itself after an "
            "error is not counted. The API key is read from the environment variable that the "
            "provider's integration reads.",
        )
    )
    return parser


def _add_demo(parser: argparse.ArgumentParser) -> None:
    _add_number(parser, "--calls", 40, "calls of each kind and model")
    parser.add_argument(
        "--blank-rate",
        type=_rate,
        default=0.25,
        metavar="RATE",
        help="share of blank answers, from 0 to 1 (default: %(default)s)",
    )
    _add_json(parser)
    parser.set_defaults(run=_demo)


def _add_probe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="as init_chat_model takes it, such as openai:gpt-5-mini; with --base-url, its name",
    )
    parser.add_argument(
        "--base-url",
        metavar="URL",
        help="an OpenAI-compatible server, such as http://localhost:8000/v1",
    )
    parser.add_argument(
        "--prompts",
        type=Path,
        metavar="FILE",
        help="your own, one a line: a plain text, or as JSON a text, a list of messages, or an "
        "object with messages (and tools) as in a request to OpenAI; they are asked in turn, "
        "--calls times (default: a few short ones)",
    )
    _add_number(parser, "--calls", 20, "calls of each model, bare and wrapped")
    _add_number(parser, "--concurrency", 4, "calls at a time")
    parser.add_argument("--stream", action="store_true", help="stream instead of invoke")
    _add_json(parser)
    parser.set_defaults(run=_probe)


def _add_number(parser: argparse.ArgumentParser, name: str, default: int, text: str) -> None:
    text = f"{text} (default: %(default)s)"
    parser.add_argument(name, type=_at_least_1, default=default, metavar="N", help=text)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")


def _demo(arguments: argparse.Namespace) -> int:
    from rich.console import Console  # noqa: PLC0415 -- may not be installed

    from langchain_retrying._probe.demo import run_demo  # noqa: PLC0415 -- as above

    console = None if arguments.json else Console()
    return run_demo(arguments.calls, arguments.blank_rate, console)


def _probe(arguments: argparse.Namespace) -> int:
    from langchain_retrying._probe.probe import run_probe  # noqa: PLC0415 -- as above

    return run_probe(
        arguments.model,
        base_url=arguments.base_url,
        prompts_file=arguments.prompts,
        calls=arguments.calls,
        concurrency=arguments.concurrency,
        streamed=arguments.stream,
        as_json=arguments.json,
    )


def _at_least_1(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 1, not {text}")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1
    if not 0 <= rate <= 1:
        raise argparse.ArgumentTypeError(f"must be from 0 to 1, not {text}")
    return rate
