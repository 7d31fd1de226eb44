"""The command line, `langchain-retrying`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The arguments without the program's name; None: those of the process.

    Returns:
        The exit code: 0, 2 if packages are missing, 130 after Ctrl-C.

    Raises:
        SystemExit: By argparse, with 0 for `--help` and 2 for arguments that can't be used.

    """
    parser = argparse.ArgumentParser(
        prog="langchain-retrying", description="Retries the empty completions of LangChain models."
    )
    commands = parser.add_subparsers(metavar="command", required=True)
    demo = commands.add_parser(
        "demo",
        help="show a bare and a wrapped model side by side",
        description="Ask a model that is blank at times, bare and wrapped in RetryingChatModel. It "
        "is a server on this machine, so no API key and no network are needed.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    demo.add_argument("--turns", type=int, default=40, help="turns of each job, at least 1")
    demo.add_argument(
        "--blank-rate", type=float, default=0.25, help="share of blank answers, from 0 to 1"
    )
    # The default seed draws about as many blanks as the default rate is expected to give.
    demo.add_argument("--seed", type=int, default=7, help="decides which answers are blank")
    demo.set_defaults(command=_demo, error=demo.error)
    judge = commands.add_parser(
        "judge",
        help="tell what kind of reply a saved message is",
        description="Tell what kind of reply a message, or a provider's reply, saved as JSON is, "
        "and why. Nothing of its content is printed.",
    )
    judge.add_argument("file", help="the JSON file, or - for standard input")
    judge.set_defaults(command=_judge, error=judge.error)

    arguments = parser.parse_args(argv)
    try:
        return int(arguments.command(arguments))
    except KeyboardInterrupt:
        return 130  # what a shell reports of a program ended by Ctrl-C


def _judge(arguments: argparse.Namespace) -> int:
    from langchain_retrying.reply import examine  # noqa: PLC0415 -- not needed for --help
    from langchain_retrying.saved import saved_reply  # noqa: PLC0415 -- as above

    try:
        if arguments.file == "-":
            text = sys.stdin.read()
        else:
            text = Path(arguments.file).read_text("utf-8")
        verdict = examine(saved_reply(json.loads(text)))
    except (OSError, ValueError) as error:
        arguments.error(f"{arguments.file}: {error}")
    print(f"kind           {verdict.kind.value}")
    reason = f"{verdict.finish_reason} ({verdict.finish_reason_key})"
    print(f"finish reason  {reason if verdict.finish_reason else 'none'}")
    print(f"seen           {', '.join(sorted(verdict.seen)) or 'nothing'}")
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    if arguments.turns < 1:
        arguments.error(f"argument --turns: must be at least 1, not {arguments.turns}")
    if not 0 <= arguments.blank_rate <= 1:
        arguments.error(f"argument --blank-rate: must be from 0 to 1, not {arguments.blank_rate}")
    try:
        from langchain_retrying._demo import run_demo  # noqa: PLC0415 -- may not be installed
    except ImportError as error:
        advice = "pip install 'langchain-retrying[demo]'"
        print(f"The demo needs more packages ({error}): {advice}", file=sys.stderr)
        return 2
    run_demo(arguments.turns, arguments.blank_rate, arguments.seed)
    return 0
