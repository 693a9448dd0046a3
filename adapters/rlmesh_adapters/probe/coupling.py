"""Coupling: does what one lane gets depend on the other lanes?"""

from __future__ import annotations

from .findings import Findings, Gap
from .verdicts import TestResult


def check_coupling(findings: Findings) -> TestResult:
    """Other rows, fewer rows, another order: a row's answer must stay what it was."""
    lab = findings.lab
    batch, rows = lab.batches[0], lab.rows
    everyone = list(range(rows))
    companies = [everyone[::-1], everyone[:1], [1, 3] if rows > 3 else everyone[1:2]]
    if not findings.is_short:
        companies += [everyone[1:] + everyone[:1], *([row] for row in everyone[1:]), [0, 0, 1], [0] * rows]
    wanted = findings.fresh_answer(0)
    for company in companies:
        with lab.visit() as session:
            given = session.ask(batch, rows=company)
        gap = findings.gap(0, [wanted[row] for row in company], given)
        if gap is not None:
            return _failed(gap, company, rows)
    return TestResult(
        name="lane-coupling",
        outcome="pass",
        sentence=f"A row is answered alike in {len(companies) + 1} companies of rows.",
        numbers={"companies": len(companies) + 1},
    )


def _told(company: list[int], rows: int) -> str:
    if len(company) == 1:
        return "when it is asked for alone"
    if sorted(company) == list(range(rows)):
        return f"when the rows come in the order {company}"
    return f"in the company of rows {company}"


def _failed(gap: Gap, company: list[int], rows: int) -> TestResult:
    return TestResult(
        name="lane-coupling",
        outcome="fail",
        sentence=f"Row {company[gap.row]} of {rows} is answered otherwise {_told(company, rows)}.",
        numbers={"row": company[gap.row], "company": company, "gap": gap.size},
    )
