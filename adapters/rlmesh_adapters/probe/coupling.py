"""Coupling: does what one lane gets depend on the other lanes?"""

from __future__ import annotations

from collections.abc import Sequence

from .answers import Answer, difference
from .findings import Findings, Gap, is_rounding
from .verdicts import TestResult

_NAME = "lane-coupling"


def check_coupling(findings: Findings) -> TestResult:
    """Other rows, fewer rows, another order: a row's answer must stay what it was."""
    lab = findings.lab
    rows = lab.rows
    everyone = list(range(rows))
    companies = [everyone[::-1], everyone[:1], [1, 3] if rows > 3 else everyone[1:2]]
    if not findings.is_short:
        companies += [everyone[1:] + everyone[:1], *([row] for row in everyone[1:]), [0, 0, 1], [0] * rows]
    wanted = findings.fresh_answer(0)
    for company in companies:
        gap = findings.gap(0, [wanted[row] for row in company], _asked(findings, company))
        if gap is not None:
            if _draws(findings, wanted):
                return _check_first_place(findings, wanted)
            return _failed(gap, company, rows)
    return TestResult(
        name=_NAME,
        outcome="pass",
        sentence=f"A row is answered alike in {len(companies) + 1} companies of rows.",
        numbers={"companies": len(companies) + 1},
    )


def _check_first_place(findings: Findings, wanted: Sequence[Answer]) -> TestResult:
    """The same with a policy that draws random numbers for the whole batch.

    They go by place, so a row that moves gets another row's. The first row stays where it is, among as many as
    before: whatever the others are, its numbers are the first that are drawn.
    """
    rows = findings.lab.rows
    companies = [[0] + [other] * (rows - 1) for other in range(1, rows)]
    companies = companies[:2] if findings.is_short else [*companies, [0] * rows]
    for company in companies:
        gap = findings.gap(0, wanted[:1], _asked(findings, company)[:1])
        if gap is not None:
            return _failed(gap, company, rows)
    return TestResult(
        name=_NAME,
        outcome="pass",
        sentence=f"Among other rows, the first is answered alike in {len(companies) + 1} companies.",
        numbers={"companies": len(companies) + 1},
    )


def _asked(findings: Findings, company: list[int]) -> list[Answer]:
    lab = findings.lab
    with lab.visit() as session:
        return session.ask(lab.batches[0], rows=company)


def _draws(findings: Findings, wanted: Sequence[Answer]) -> bool:
    """Tell whether a fresh instance answers otherwise where the random sources are in another state."""
    lab = findings.lab
    with lab.visit() as session:
        given = session.ask(lab.batches[0], noise=1)
    gap = max(difference(one, other) for one, other in zip(wanted, given, strict=True))
    return not is_rounding(gap, findings.scale)


def _told(company: list[int], rows: int) -> str:
    if len(company) == 1:
        return "when it is asked for alone"
    if sorted(company) == list(range(rows)):
        return f"when the rows come in the order {company}"
    return f"in the company of rows {company}"


def _failed(gap: Gap, company: list[int], rows: int) -> TestResult:
    return TestResult(
        name=_NAME,
        outcome="fail",
        sentence=f"Row {company[gap.row]} of {rows} is answered otherwise {_told(company, rows)}.",
        numbers={"row": company[gap.row], "company": company, "gap": gap.size},
    )
