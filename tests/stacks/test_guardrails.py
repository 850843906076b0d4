"""Our own stacks pass our own guardrails."""

import pytest

from policies.resource_values import Facts
from policies.resources import read, together
from policies.rules import findings
from tests.stacks.synthesised import ALL, GOVERNED, TODAY, stacks_of


@pytest.mark.parametrize("environment", sorted({name for name, _ in ALL}))
def test_the_rules_see_tables_and_lag(environment: str) -> None:
    reviewed = together([read(stack) for stack in stacks_of(environment).values()])
    facts = Facts(reviewed, TODAY)
    assert facts.tables >= {"nyc.flights", "nyc.flights__dead_letters"}
    assert {place.prefix for place in facts.table_places()} >= {"lake"}
    assert facts.lag_seconds("flights")


ON_STAND_INS = [
    "environment local: records come from Kafka without TLS. Set security to SASL_SSL or SSL [in_the_clear]"
]


@pytest.mark.parametrize("environment", sorted({GOVERNED, *(name for name, _ in ALL)}))
def test_no_rule_has_anything_against_an_environment(environment: str) -> None:
    reviewed = together([read(stack) for stack in stacks_of(environment).values()])
    assert [str(found) for found in findings(reviewed, Facts(reviewed, TODAY))] == (
        ON_STAND_INS if environment == "local" else []
    )
