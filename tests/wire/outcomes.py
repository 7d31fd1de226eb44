"""What a call to a wrapped model must come to, told from what the fault server served to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from langchain_retrying import RetryPolicy
from wire.faults import FAULTS, Fault, Served

NOT_RETRIED = ("length", "content_filter")


@dataclass
class Outcome:
    """What a call comes to."""

    text: str = ""
    """The content of the reply; of a stream that failed, what was shown before."""
    error: str | None = None
    """The name of the exception's class."""
    empty: bool = False
    """Whether the reply, or the exception, tells of an empty completion."""
    runs: int = 0
    """Calls of the model: an agent makes several."""


def outcome_of(
    served: Sequence[Served], policy: RetryPolicy, errors: Mapping[tuple[str, bool], str]
) -> Outcome:
    """The one right outcome.

    Args:
        served: All requests of the call, in order.
        policy: Of the model. It retries either all exceptions or none, and either returns an
            empty reply or raises.
        errors: The class of exception that the bare model makes of a fault, by the fault's name
            and whether the request is streamed.

    Raises:
        AssertionError: The requests are too few, too many or not those that the policy sends.

    """
    outcome = Outcome()
    requests = iter(served)
    while outcome.error is None and not outcome.empty:
        outcome.runs += 1
        answer = _run(requests, policy, errors, outcome)
        if answer is None or not answer.calls_tool:
            break
    assert next(requests, None) is None, "a request was made after the outcome was known"
    return outcome


def _run(
    requests: Iterator[Served],
    policy: RetryPolicy,
    errors: Mapping[tuple[str, bool], str],
    outcome: Outcome,
) -> Served | None:
    """Follow one call of the model; give the request that was answered, if one was."""
    rejected: Served | None = None
    refused = False
    for left in reversed(range(policy.max_retries + 1)):
        request = next(requests, None)
        assert request is not None, "a request that was due was not made"
        nudged = rejected is not None and not refused
        assert request.nudged == nudged, "the nudge is not as it should be"
        fault = FAULTS[request.fault]
        if is_answered(fault):
            outcome.text += _shown(request)
            return request
        if nudged and fault.status == 400:
            refused, goes_on = True, True
        elif is_error(fault):
            is_torn = fault.visible and request.streamed
            goes_on = policy.retry is not None and not is_torn
            if not (goes_on and left):
                outcome.text += _shown(request) if is_torn else ""
                outcome.error = errors[request.fault, request.streamed]
                return None
        else:
            rejected = request
            goes_on = fault.finish_reason not in NOT_RETRIED
        if not (goes_on and left):
            break
    assert rejected is not None
    outcome.empty = True
    if policy.on_exhausted == "raise":
        outcome.error = "EmptyCompletionError"
    else:
        outcome.text += _shown(rejected)
    return None


def _shown(request: Served) -> str:
    return "" if request.calls_tool else request.text


def is_answered(fault: Fault) -> bool:
    """Whether a consumer gets something that can be used, and nothing else."""
    return fault.visible and not is_error(fault)


def is_error(fault: Fault) -> bool:
    """Whether the bare model raises, and not because nothing came."""
    is_page = fault.whole is not None and "html" in fault.whole
    return fault.status != 200 or fault.torn or is_page
