"""A probe as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlmesh_adapters.probe.verdicts import TestResult

from .probing import Probed
from .screens import empty_table, make_console, plain_text, print_titled

#: Recommended way to run -> what to type.
ADVICE = {
    "shared": "run it as it is; lanes share one instance",
    "lane": "run it as it is; each lane gets an instance of its own (--instances lane)",
    "state": "run it as it is; its state is kept by episode",
    "episode": "run it with --instances episode: a new instance for every episode",
    "one lane": "run it with --num-envs 1, or make each row's answer its own",
    "nothing": "mend it first: no way to run it gives a number that can be trusted",
}
_STYLES = {"pass": "green", "fail": "red", "noted": "yellow", "not checked": "yellow"}


def show_probe(probed: Probed, console: Console | None = None) -> None:
    """Print a probe to standard output."""
    console = console or make_console()
    verdict = probed.verdict
    print_titled(console, f"probe of {probed.policy} on {probed.env.id}", _tests_table(verdict.tests))
    name = verdict.verdict.replace("_", "-")
    style = "bold green" if verdict.is_safe else "bold red"
    console.print(Text.assemble(("verdict ", "bold"), (name, style)), soft_wrap=True)
    console.print(plain_text(verdict.meaning), soft_wrap=True)
    console.print(plain_text(f"next: {ADVICE[verdict.recommended]}"), soft_wrap=True)
    console.print(
        plain_text(
            f"{verdict.corner}: {verdict.calls} calls of {verdict.instances} instances in {verdict.seconds:.2f} s"
        ),
        soft_wrap=True,
    )
    if probed.audit is not None:
        console.print()
        print_titled(console, f"environment {probed.env.id}", _tests_table(probed.audit))


def _tests_table(tests: Sequence[TestResult]) -> Table:
    table = empty_table([("test", "left"), ("outcome", "left"), ("what it found", "text")])
    for test in tests:
        table.add_row(
            plain_text(test.name), Text(test.outcome, style=_STYLES[test.outcome]), plain_text(test.sentence)
        )
    return table
