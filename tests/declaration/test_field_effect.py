"""The effect of a changed field in words, and whether it is dangerous."""

from frazil.declaration.field_effect import FieldEffect, Outcome, always


def test_an_effect_says_what_the_values_add() -> None:
    effect = FieldEffect(Outcome.UPKEEP, "files change", more=lambda before, after: f"{before} to {after}")
    assert effect.said(1, 2) == "files change; 1 to 2"
    assert not effect.is_dangerous(1, 2)


def test_an_effect_without_more_is_its_words() -> None:
    effect = FieldEffect(Outcome.STOPS, "it stops", always)
    assert effect.said(1, 2) == "it stops"
    assert effect.is_dangerous(1, 2)
