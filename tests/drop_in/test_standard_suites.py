"""LangChain's standard tests of a chat model pass for a wrapped one wherever they do for the bare.

They are run once, in a process of their own, as `pytest tests/standard` runs them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("langchain_tests", reason="langchain-tests is installed for development only")

SUITES = Path(__file__).parents[1] / "standard"
# How many pass bare, as of langchain-tests 1.1.9, and less a few that a release may take away.
FLOORS = {"suite_anthropic": 56, "suite_openai": 57, "suite_scripted": 55}
MODE = re.compile(r"\b(bare|wrapped|blanked)\b")
PASSED = "passed"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What became of each test, by suite, mode and test: `PASSED`, or why not."""
    directory = tmp_path_factory.mktemp("standard")
    report = directory / "report.xml"
    places = (f"--junit-xml={report}", f"--benchmark-storage=file://{directory}")
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "pytest.ini", *places],
        cwd=SUITES,
        env={**os.environ, "PYTEST_ADDOPTS": "", "LANGSMITH_TRACING": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), process.stdout
    found = defaultdict(dict)
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 -- our own
        suite, kind = case.get("classname").split(".")
        test, mode, parameters = MODE.split(case.get("name"))
        troubles = [
            f"{trouble.tag}: {trouble.get('message')}"
            for trouble in case
            if trouble.tag in ("failure", "error", "skipped")
        ]
        name = f"{kind}.{test}{parameters}".replace("[]", "").replace("[-", "[")
        found[suite, mode][name] = "; ".join(troubles) or found[suite, mode].get(name, PASSED)
    return found


def not_passed(outcomes):
    return {test: outcome for test, outcome in outcomes.items() if outcome != PASSED}


def listed(outcomes):
    return "\n".join(f"  {test}: {outcome}" for test, outcome in outcomes.items())


@pytest.mark.parametrize("suite", FLOORS)
def test_enough_passes_bare(outcomes, suite):
    bare = outcomes[suite, "bare"]
    others = not_passed(bare)
    assert len(bare) - len(others) >= FLOORS[suite], f"the rest:\n{listed(others)}"


@pytest.mark.parametrize("mode", ["wrapped", "blanked"])
@pytest.mark.parametrize("suite", FLOORS)
def test_what_passes_bare_passes_wrapped(outcomes, suite, mode):
    bare, wrapped = outcomes[suite, "bare"], outcomes[suite, mode]
    others = not_passed(bare)
    worse = {test: wrapped[test] for test in bare.keys() - others if wrapped[test] != PASSED}
    assert not worse, f"\n{listed(worse)}\nwhat does not pass bare either:\n{listed(others)}"
