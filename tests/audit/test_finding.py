from __future__ import annotations

from frazil.audit.finding import Finding, Flaw, Outcome, worst


def of(flaw: Flaw) -> Finding:
    return Finding(flaw=flaw, where="table shop.orders", what="it is so")


def test_exit_codes_are_0_proven_1_not_proven_5_unchecked() -> None:
    assert [o.exit_code for o in (Outcome.PROVEN, Outcome.NOT_PROVEN, Outcome.UNCHECKED)] == [0, 1, 5]


def test_a_contradiction_outweighs_what_could_not_be_known() -> None:
    assert worst(()) is Outcome.PROVEN
    assert worst((of(Flaw.NO_TABLE),)) is Outcome.UNCHECKED
    assert worst((of(Flaw.NO_TOTALS), of(Flaw.HOLE))) is Outcome.NOT_PROVEN
