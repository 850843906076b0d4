from __future__ import annotations

from frazil.audit.finding import Finding, Flaw, Outcome, worst


def of(flaw: Flaw) -> Finding:
    return Finding(flaw=flaw, where="table shop.orders", what="it is so")


def test_a_contradiction_outweighs_what_could_not_be_known() -> None:
    assert worst(()) is Outcome.PROVEN
    assert worst((of(Flaw.NO_TABLE),)) is Outcome.UNCHECKED
    assert worst((of(Flaw.NO_TOTALS), of(Flaw.HOLE))) is Outcome.NOT_PROVEN
