"""What an account may wish beside the lake: a workgroup for queries, Lake Formation's grants, a log of connections."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from infra.network_plan import GivenNetwork
from stacks.spec.deployments import Access, Workgroup, dev
from stacks.stacks.account_setup import has_flow_logs
from tests.declaration.problems_of import problems_of
from tests.stacks.synthesised import (
    EXAMPLE,
    GOVERNED,
    GOVERNED_DEV,
    STACKS,
    named,
    resources,
    stacks_of,
    synthesised,
)

FOUNDATION, CONFLUENT, INGESTION = (stacks_of(GOVERNED)[what] for what in STACKS)
LOGS = dev.names.bucket("logs")


def grants(stack: dict[str, Any]) -> dict[str, dict[str, tuple[str, ...]]]:
    """The permissions by the resource, of each role."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for each in resources(stack, "aws_lakeformation_permissions").values():
        if "database" in each:
            what = each["database"]["name"]
        else:
            assert each["table"] == {"database_name": each["table"]["database_name"], "wildcard": True}
            what = f"{each['table']['database_name']}.*"
        found.setdefault(role_of(stack, each["principal"]), {})[what] = tuple(each["permissions"])
    return found


def role_of(stack: dict[str, Any], principal: str) -> str:
    """The name of the role that an expression or ARN names."""
    if principal.startswith("arn:"):
        return principal.rpartition("/")[2]
    return str(
        resources(stack, "aws_iam_role")[principal.removeprefix("${aws_iam_role.").removesuffix(".arn}")]["name"]
    )


def test_a_workgroup_enforces_where_results_are_and_the_key_that_encrypts_them() -> None:
    [workgroup] = resources(INGESTION, "aws_athena_workgroup").values()
    configuration = workgroup["configuration"]
    assert workgroup["name"] == "frazil-dev"
    assert configuration["enforce_workgroup_configuration"] is True
    assert configuration["publish_cloudwatch_metrics_enabled"] is True
    assert configuration["bytes_scanned_cutoff_per_query"] == 100 * 1024**3
    result = configuration["result_configuration"]
    assert result["output_location"] == f"s3://{LOGS}/athena/"
    assert result["encryption_configuration"]["encryption_option"] == "SSE_KMS"
    assert "aws_kms_key" in result["encryption_configuration"]["kms_key_arn"]
    assert "workgroup/frazil-dev" in json.dumps(resources(INGESTION, "aws_iam_policy"))


def test_a_given_workgroup_is_not_made() -> None:
    stack = synthesised(named(GOVERNED_DEV, access=replace(GOVERNED_DEV.access, athena_workgroup="analysts")))[
        "ingestion"
    ]
    assert not resources(stack, "aws_athena_workgroup")
    assert "workgroup/analysts" in json.dumps(resources(stack, "aws_iam_policy"))


@pytest.mark.parametrize("given", [Workgroup(), "a b", "a/b"], ids=str)
def test_a_workgroup_needs_readers_and_a_name_that_athena_takes(given: Any) -> None:
    readers = dev.access.readers if isinstance(given, Workgroup) else GOVERNED_DEV.access.readers
    wrong = lambda: Access(athena_workgroup=given, readers=readers)  # noqa: E731
    assert list(problems_of(wrong)) == ["access.athena_workgroup"]


def test_each_role_gets_the_least_that_it_needs_in_lake_formation() -> None:
    assert grants(INGESTION) == {
        "frazil-dev-ingest": {"nyc": ("CREATE_TABLE", "DESCRIBE"), "nyc.*": ("ALTER", "DESCRIBE")},
        "frazil-dev-maintain": {"nyc": ("DESCRIBE",), "nyc.*": ("ALTER", "DESCRIBE")},
        "frazil-dev-reader": {"nyc": ("DESCRIBE",), "nyc.*": ("DESCRIBE", "SELECT")},
    }
    assert grants(CONFLUENT) == {
        "frazil-dev-tableflow": {"flow": ("CREATE_TABLE", "DESCRIBE"), "flow.*": ("ALTER", "DESCRIBE")}
    }


def test_runs_and_tables_wait_for_the_grants() -> None:
    made = {f"aws_lakeformation_permissions.{name}" for name in resources(INGESTION, "aws_lakeformation_permissions")}
    of_jobs = {name for name in made if "operators" not in name}
    [desired] = [each for name, each in resources(INGESTION, "aws_s3_object").items() if name == "desired"]
    assert len(of_jobs) == 4
    assert of_jobs <= set(desired["depends_on"])
    flowing = {
        f"aws_lakeformation_permissions.{name}" for name in resources(CONFLUENT, "aws_lakeformation_permissions")
    }
    for table in resources(CONFLUENT, "confluent_tableflow_topic").values():
        assert flowing <= set(table["depends_on"])


def test_connections_are_logged_with_the_key() -> None:
    [log] = resources(FOUNDATION, "aws_flow_log").values()
    group = resources(FOUNDATION, "aws_cloudwatch_log_group")["flow-logs-log"]
    assert (log["traffic_type"], log["log_destination_type"]) == ("ALL", "cloud-watch-logs")
    assert "aws_vpc" in log["vpc_id"]
    assert log["log_destination"] == "${aws_cloudwatch_log_group.flow-logs-log.arn}"
    assert group["name"] == "/frazil/dev/flow-logs", "the key's policy opens log groups by this prefix"
    assert "aws_kms_key" in group["kms_key_id"]
    assert role_of(FOUNDATION, log["iam_role_arn"]) == "frazil-dev-flow-logs"


def test_a_given_network_is_not_logged() -> None:
    network = GivenNetwork(subnet_ids=("subnet-01234567",), security_group_ids=("sg-01234567",))
    assert not has_flow_logs(network)
    assert has_flow_logs(GOVERNED_DEV.network)
    assert not has_flow_logs(dev.network)


def test_flow_logs_move_no_document() -> None:
    """The address of the environment document depends on what replaces the application. A log does not."""
    logged = synthesised(named(dev, network=replace(dev.network, flow_logs=True)), EXAMPLE)["ingestion"]
    assert resources(logged, "aws_s3_object").keys() == resources(stacks_of("dev")["ingestion"], "aws_s3_object").keys()
