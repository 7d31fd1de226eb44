"""The command line, `langchain-retrying`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The arguments without the program's name; None: those of the process.

    Returns:
        The exit code: 0, 1 if the run failed, 130 after Ctrl-C.

    Raises:
        SystemExit: With 0 for `--help`, with 2 for what can't be used: arguments, files, a model
            that is not known, packages that are missing.

    """
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.command(arguments))
    except KeyboardInterrupt:
        return 130  # what a shell reports of a program ended by Ctrl-C


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="langchain-retrying", description="Retries the empty completions of LangChain models."
    )
    commands = parser.add_subparsers(metavar="command", required=True)
    demo = commands.add_parser(
        "demo",
        help="probe a model that is blank at times, on a server of its own",
        description="Ask a model that is blank at times, bare and wrapped in RetryingChatModel, in "
        "four ways. It is a server on this machine, so no API key and no network are needed.",
    )
    demo.add_argument(
        "--calls",
        "--turns",
        type=_at_least_1,
        default=40,
        metavar="N",
        help="calls of each kind and model (default: %(default)s)",
    )
    demo.add_argument(
        "--blank-rate",
        type=_rate,
        default=0.25,
        metavar="RATE",
        help="share of blank answers, from 0 to 1 (default: %(default)s)",
    )
    # The default seed draws about as many blanks as the default rate is expected to give.
    demo.add_argument(
        "--seed",
        type=int,
        default=7,
        metavar="N",
        help="decides which answers are blank (default: %(default)s)",
    )
    _add_output(demo)
    demo.set_defaults(command=_demo, parser=demo)

    probe = commands.add_parser(
        "probe",
        help="find out how often your model is blank, and what helps",
        description="Ask a model, bare and wrapped in RetryingChatModel, and report how often its "
        "replies are empty, what retries did and cost, and which policy fits. Nothing is stored, "
        "and nothing of the content is printed, unless asked for.",
        epilog="Each retry is a request. What a provider's client repeats by itself after an error "
        "is not counted. The API key is read from the environment variable that the provider's "
        "integration reads.",
    )
    probe.add_argument(
        "model",
        metavar="MODEL",
        help="as init_chat_model takes it, such as openai:gpt-5-mini; with --base-url, its name",
    )
    probe.add_argument("--base-url", metavar="URL", type=_url, help="an OpenAI-compatible server")
    probe.add_argument(
        "--calls",
        type=_at_least_1,
        default=20,
        metavar="N",
        help="calls of each model, bare and wrapped (default: %(default)s)",
    )
    probe.add_argument(
        "--prompts",
        type=Path,
        metavar="FILE",
        help="your own, as JSONL: each line is a text, a list of messages, or an object with "
        "messages (and tools; the rest is not used) as in a request to OpenAI; they are asked in "
        "turn, --calls times (default: a few short ones)",
    )
    probe.add_argument("--stream", action="store_true", help="stream instead of invoke")
    probe.add_argument(
        "--concurrency",
        type=_at_least_1,
        default=4,
        metavar="N",
        help="calls at a time (default: %(default)s)",
    )
    probe.add_argument(
        "--max-requests",
        type=_at_least_1,
        metavar="N",
        help="stop before a call that could take more (default: no limit)",
    )
    probe.add_argument(
        "--max-total-tokens",
        type=_at_least_1,
        metavar="N",
        help="stop when so many are used, in and out, as far as reported; calls under way are "
        "finished (default: no limit)",
    )
    _add_output(probe)
    probe.set_defaults(command=_probe, parser=probe)

    judge = commands.add_parser(
        "judge",
        help="tell what kind of reply a saved message is",
        description="Tell what kind of reply a message, or a provider's reply, saved as JSON is, "
        "and why. Nothing of its content is printed.",
    )
    judge.add_argument("file", help="the JSON file, or - for standard input")
    judge.set_defaults(command=_judge, parser=judge)
    return parser


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw them (.png, .svg, .pdf)")
    parser.add_argument(
        "--show-content", action="store_true", help="print what the model said, too"
    )


def _judge(arguments: argparse.Namespace) -> int:
    from langchain_retrying._judge.reply import examine  # noqa: PLC0415 -- not needed for --help
    from langchain_retrying._probe.saved import saved_reply  # noqa: PLC0415 -- as above

    try:
        if arguments.file == "-":
            text = sys.stdin.read()
        else:
            text = Path(arguments.file).read_text("utf-8")
        verdict = examine(saved_reply(json.loads(text)))
    except OSError as error:
        _refuse(arguments, f"{arguments.file}: {error.strerror}")
    except ValueError as error:
        _refuse(arguments, f"{arguments.file}: {error}")
    except RecursionError:
        _refuse(arguments, f"{arguments.file}: it is nested too deeply")
    except (AttributeError, KeyError, TypeError):  # a number where an object should be, and so on
        _refuse(arguments, f"{arguments.file}: it has the keys of a reply, but not its parts")
    print(f"kind           {verdict.kind.value}")
    reason = f"{verdict.finish_reason} ({verdict.finish_reason_key})"
    print(f"finish reason  {reason if verdict.finish_reason else 'none'}")
    print(f"seen           {', '.join(sorted(verdict.seen)) or 'nothing'}")
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    try:
        from langchain_retrying._probe import Output  # noqa: PLC0415 -- as above
        from langchain_retrying._probe.demo import run_demo  # noqa: PLC0415 -- may not be installed
        from langchain_retrying._probe.errors import BadInputError  # noqa: PLC0415 -- as above
    except ImportError as error:
        _refuse(arguments, _needs("demo", error))
    output = Output(arguments.json, arguments.plot, arguments.show_content)
    try:
        return run_demo(arguments.calls, arguments.blank_rate, arguments.seed, output)
    except BadInputError as error:
        _refuse(arguments, str(error))


def _probe(arguments: argparse.Namespace) -> int:
    try:
        from langchain_retrying._probe import Output, run_probe  # noqa: PLC0415 -- as above
        from langchain_retrying._probe.errors import BadInputError  # noqa: PLC0415 -- as above
        from langchain_retrying._probe.runs import Limits  # noqa: PLC0415 -- as above
    except ImportError as error:
        _refuse(arguments, _needs("probe", error))
    limits = Limits(arguments.concurrency, arguments.max_requests, arguments.max_total_tokens)
    try:
        return run_probe(
            arguments.model,
            base_url=arguments.base_url,
            prompts_file=arguments.prompts,
            calls=arguments.calls,
            streamed=arguments.stream,
            limits=limits,
            output=Output(arguments.json, arguments.plot, arguments.show_content),
        )
    except BadInputError as error:
        _refuse(arguments, str(error))


def _refuse(arguments: argparse.Namespace, text: str) -> NoReturn:
    """End with a sentence about what can't be used."""
    parser: argparse.ArgumentParser = arguments.parser
    parser.exit(2, f"{parser.prog}: {text}\n")


def _needs(extra: str, error: ImportError) -> str:
    return f"more packages are needed ({error}): pip install 'langchain-retrying[{extra}]'"


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


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f"must begin with http:// or https://, not {text!r}")
    return text
