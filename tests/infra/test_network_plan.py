"""Addresses of a network."""

import ipaddress

import pytest

from infra.network_plan import NetworkPlan
from tests.declaration.problems_of import problems_of


@pytest.mark.parametrize("cidr", ["10.0.0.0/25", "10.0.0.0/8", "8.8.8.0/24", "10.0.0.1/20", "ten"])
def test_addresses_that_do_not_do_are_refused(cidr: str) -> None:
    assert list(problems_of(lambda: NetworkPlan(cidr=cidr))) == ["network_plan.cidr"]


@pytest.mark.parametrize("zones", [("a",), ("a", "a"), ("a", "b", "c")])
def test_a_network_of_jobs_has_two_zones(zones: tuple[str, ...]) -> None:
    assert list(problems_of(lambda: NetworkPlan(cidr="10.0.0.0/20", zones=zones))) == ["network_plan.zones"]


def test_subnets_are_apart_and_within() -> None:
    whole = ipaddress.IPv4Network("10.20.0.0/20")
    parts = [ipaddress.IPv4Network(part) for part in NetworkPlan(cidr=str(whole)).subnets()]
    assert len(parts) == 4
    assert all(part.subnet_of(whole) for part in parts)
    assert not any(one.overlaps(other) for one in parts for other in parts if one is not other)
