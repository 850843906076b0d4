"""What a synthesised stack from elsewhere may contain before it is planned with credentials: an allow-list.

A pull request from a fork is synthesised by its own code, without credentials. Planning that JSON reads the account and the
machine. So the JSON may contain only what this version's stacks contain: their types and arguments, providers and states, and
in each argument their expressions. `foreign_stack.json` lists types, arguments and expressions, and
`python -m tests.stacks.synthesised` writes it from the stacks.

The state holds secrets, and a provider's error or a planned argument shows what an expression carries into it. So the secret of an
API key may be in `credentials` and in the secret of the jobs, alone and as it is. Both are sensitive for the provider.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from policies.template_expressions import problem

Json = Mapping[str, Any]

MOST_BYTES = 20_000_000
_LISTED: Mapping[str, Mapping[str, Sequence[str]]] = json.loads(
    Path(__file__).with_name("foreign_stack.json").read_text("utf-8")
)
_SECTIONS = frozenset({"//", "data", "locals", "moved", "output", "provider", "removed", "resource", "terraform"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ADDRESS = re.compile(r"(?:data\.)?[a-z0-9_]+\.[A-Za-z_][A-Za-z0-9_-]*")
_ENDPOINT = re.compile(r"\$\{(?:data\.)?confluent_(?:kafka|schema_registry)_cluster\.[A-Za-z0-9_-]+\.rest_endpoint\}")
_KEY_ID = re.compile(r"\$\{confluent_api_key\.([A-Za-z0-9_-]+)\.id\}")
_SECRET_STRING = re.compile(
    r'\{"kafka_key": "\$\{confluent_api_key\.(?P<kafka>[A-Za-z0-9_-]+)\.id\}", '
    r'"kafka_secret": "\$\{confluent_api_key\.(?P=kafka)\.secret\}", '
    r'"registry_key": "\$\{confluent_api_key\.(?P<registry>[A-Za-z0-9_-]+)\.id\}", '
    r'"registry_secret": "\$\{confluent_api_key\.(?P=registry)\.secret\}"\}'
)
_SELF = re.compile(r"\$\{self\.write_mode == \"[A-Z]+\"\}")
_LIFECYCLE = frozenset({"create_before_destroy", "postcondition", "prevent_destroy"})
_OUTPUT = frozenset({"description", "sensitive", "value"})
_NEVER = frozenset({"connection", "dynamic", "provisioner"})
_STATE = "terraform_remote_state"


def parsed(text: bytes) -> dict[str, Any]:
    """Parse a stack's JSON. Raises `ValueError` for other JSON than CDKTF writes.

    Terraform reads a repeated name as a further block, and Python reads its last value. So a repeated name is refused.
    """
    if len(text) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    try:
        content = json.loads(text.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("its JSON is too deep") from None
    if not isinstance(content, dict):
        raise ValueError("it is no object")
    return content


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is repeated")
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def refusals(stack: Json, trusted: Json, states: Sequence[Json]) -> list[str]:
    """Return what a stack contains that it may not, with its place; empty if it may be planned.

    `trusted` is the same stack as trusted code synthesises it: its providers and its state must be the same. `states` are the
    settings of the states that a stack may read, as `terraform_remote_state` takes them.
    """
    return [*_refusals(stack, trusted, states)]


def _refusals(stack: Json, trusted: Json, states: Sequence[Json]) -> Iterator[str]:
    for name in sorted(stack.keys() - _SECTIONS):
        yield f"{name}: the section is not allowed"
    for name in ("terraform", "provider"):
        if stack.get(name) != trusted.get(name):
            yield f"{name}: it is another one than that of the base branch"
    for section in ("resource", "data"):
        for kind, name, body in _blocks(stack.get(section, {})):
            place = f"{section}.{kind}.{name}"
            if body is None or not _NAME.fullmatch(name):
                yield f"{place}: it is no object with a name"
            elif kind not in _LISTED[section]:
                yield f"{place}: the type is not allowed"
            elif kind == _STATE:
                yield from _state(place, body, states)
            else:
                yield from _block(place, body, _LISTED[section][kind])
    yield from _rest(stack)
    for section in sorted(stack.keys() & {"data", "locals", "output", "resource"}):
        yield from _texts((section,), section, stack[section])


def _blocks(section: Any) -> Iterator[tuple[str, str, Json | None]]:
    if not isinstance(section, Mapping):
        yield "(all)", "(all)", None
        return
    for kind, named in section.items():
        if not isinstance(named, Mapping):
            yield kind, "(all)", None
            continue
        for name, body in named.items():
            yield kind, name, body if isinstance(body, Mapping) else None


def _block(place: str, body: Json, allowed: Sequence[str]) -> Iterator[str]:
    for argument in sorted(body.keys() - {*allowed, "//"}):
        yield f"{place}.{argument}: the argument is not allowed"
    if "depends_on" in body and not _is_addresses(body["depends_on"]):
        yield f"{place}.depends_on: it is no list of addresses"
    if "lifecycle" in body:
        yield from _lifecycle(f"{place}.lifecycle", body["lifecycle"])
    # The provider sends the credentials to this address, and some resources already while they are planned.
    if "rest_endpoint" in body and not _is(body["rest_endpoint"], _ENDPOINT):
        yield f"{place}.rest_endpoint: it is not that of a cluster"
    if body.get("credentials") is not None and not _is_credentials(body["credentials"]):
        yield f"{place}.credentials: they are not those of an API key"
    if "secret_string" in body and not _is(body["secret_string"], _SECRET_STRING):
        yield f"{place}.secret_string: it is not the keys of the jobs"


def _is_credentials(value: Any) -> bool:
    """Return whether credentials are id and secret of one API key, as they are."""
    if not isinstance(value, Mapping) or not isinstance(value.get("key"), str):
        return False
    key = _KEY_ID.fullmatch(value["key"])
    return key is not None and value == {"key": key[0], "secret": f"${{confluent_api_key.{key[1]}.secret}}"}


def _lifecycle(place: str, body: Any) -> Iterator[str]:
    if not isinstance(body, Mapping):
        yield f"{place}: it is no object"
        return
    for name in sorted(body.keys() - _LIFECYCLE):
        yield f"{place}.{name}: the argument is not allowed"
    conditions = body.get("postcondition", [])
    for each in conditions if isinstance(conditions, list) else [None]:
        # A condition can show a secret bit by bit: a plan fails or it does not.
        if (
            not isinstance(each, Mapping)
            or each.keys() != {"condition", "error_message"}
            or not _is(each["condition"], _SELF)
        ):
            yield f"{place}.postcondition: the condition is not allowed"


def _state(place: str, body: Json, states: Sequence[Json]) -> Iterator[str]:
    wanted = [
        {"backend": each["backend"], "config": each["config"], "workspace": "${terraform.workspace}"} for each in states
    ]
    if {name: value for name, value in body.items() if name != "//"} not in wanted:
        yield f"{place}: it reads another state than those of the environment"


def _rest(stack: Json) -> Iterator[str]:
    for name, output in _items(stack.get("output", {})):
        if not isinstance(output, Mapping) or output.keys() - _OUTPUT or not _NAME.fullmatch(name):
            yield f"output.{name}: it has other members than {', '.join(sorted(_OUTPUT))}"
    if not isinstance(stack.get("locals", {}), Mapping):
        yield "locals: it is no object"
    for index, moved in enumerate(_listed(stack.get("moved", []))):
        if (
            not isinstance(moved, Mapping)
            or moved.keys() != {"from", "to"}
            or not _is_addresses([*moved.values()])
            or moved["from"].rpartition(".")[0] != moved["to"].rpartition(".")[0]
        ):
            yield f"moved[{index}]: it is no pair of addresses of one type"
    for index, removed in enumerate(_listed(stack.get("removed", []))):
        if (
            not isinstance(removed, Mapping)
            or removed.keys() != {"from", "lifecycle"}
            or not _is_addresses([removed["from"]])
            or _bare(removed["lifecycle"]) != {"destroy": False}
        ):
            yield f"removed[{index}]: it does anything else than to forget an object"


def _bare(lifecycle: Any) -> Any:
    """Return a lifecycle that CDKTF may write as a list of one."""
    return lifecycle[0] if isinstance(lifecycle, list) and len(lifecycle) == 1 else lifecycle


def _items(section: Any) -> Iterator[tuple[str, Any]]:
    yield from section.items() if isinstance(section, Mapping) else [("(all)", None)]


def _listed(section: Any) -> list[Any]:
    return section if isinstance(section, list) else [section]


def _is_addresses(value: Any) -> bool:
    return isinstance(value, list) and all(_is(each, _ADDRESS) for each in value)


def _is(value: Any, pattern: re.Pattern[str]) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def position(path: Sequence[str]) -> str:
    """Return the argument of a path in a stack, without the name of its block: `resource.aws_vpc.tags`."""
    named = 2 if path[0] in {"data", "resource"} else 1
    return ".".join((*path[:named], *path[named + 1 :]))


def _texts(path: tuple[str, ...], place: str, value: Any) -> Iterator[str]:
    """Yield the expressions that are not allowed, in values and in names."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            if name in _NEVER:
                yield f"{place}.{name}: it is not allowed"
            if "${" in name or "%{" in name:
                yield f"{place}: a name has an expression"
            yield from _texts((*path, name), f"{place}.{name}", part)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _texts(path, f"{place}[{index}]", part)
    elif isinstance(value, str) and (reason := problem(value, _LISTED["expressions"].get(position(path), ()))):
        yield f"{place}: {reason}"
