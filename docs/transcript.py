"""Write demo.svg beside this file: what `langchain-retrying demo` prints, from a real run.

Which replies are blank is the same in each run; only the times differ.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

from rich.console import Console

from langchain_retrying._probe.demo import run_demo


def main() -> None:
    """Run the demo with its defaults."""
    random.seed(7)  # of the waits before second retries
    console = Console(record=True, width=80)
    console.print("$ langchain-retrying demo\n", style="bold", highlight=False)
    run_demo(calls=40, blank_rate=0.25, console=console)
    svg = console.export_svg(title="langchain-retrying demo", unique_id="demo")
    # Without rich's web font, which a page that shows a picture does not load anyway.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    Path(__file__).with_name("demo.svg").write_text(svg, "utf-8")


if __name__ == "__main__":
    main()
