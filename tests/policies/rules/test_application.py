"""The application has a label with a future."""

from __future__ import annotations

from datetime import date
from typing import Any

from frazil.release.emr_labels import LABELS, SOON_DAYS
from policies.rules.application import label_near_end
from tests.policies.reviewing import TODAY, stack, told

ADDRESS = "aws_emrserverless_application.a"


def application(label: str = LABELS[0].name) -> dict[str, Any]:
    return stack(aws_emrserverless_application__a={"release_label": label})


def test_a_label_near_its_end_is_told() -> None:
    assert told(label_near_end, application()) == []
    end = LABELS[0].supported_until
    just = date.fromordinal(end.toordinal() - SOON_DAYS)
    assert told(label_near_end, application(), today=just) == [
        (ADDRESS, f"standard support of {LABELS[0].name} ends on {end}")
    ]
    assert told(label_near_end, application(), today=date.fromordinal(just.toordinal() - 1)) == []


def test_a_label_that_nobody_knows_is_told() -> None:
    findings = told(label_near_end, application(label="emr-6.1.0"), today=TODAY)
    assert findings == [(ADDRESS, "emr-6.1.0 is an unknown label")]
