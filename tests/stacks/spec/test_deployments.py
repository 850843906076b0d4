"""The classes of a deployment that people write."""

from dataclasses import fields, is_dataclass

from infra import capacity, network_plan
from infra.confluent import managed_topic
from stacks.spec import access_settings, confluent_settings, deployments, existing, job_settings

MODULES = (
    deployments,
    access_settings,
    confluent_settings,
    existing,
    job_settings,
    capacity,
    network_plan,
    managed_topic,
)


def test_a_class_that_people_write_has_few_fields() -> None:
    written = {each for module in MODULES for each in vars(module).values() if is_dataclass(each)}
    assert deployments.Deployment in written
    assert {each.__name__: len(fields(each)) for each in written if len(fields(each)) > 12} == {}
