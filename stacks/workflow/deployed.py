"""The objects of an environment that hold data, as a committed file: `deployed/<environment>.json`.

Terraform's `prevent_destroy` protects an object only while the object is declared. If a declaration disappears, so does its
protection, and the next apply deletes the object. Synthesis therefore compares each declaration with this file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from frazil.declaration.checks.constraints import NOT_EMPTY, matching
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.declaration.documents.from_json import VERSION, from_json, members
from frazil.declaration.documents.to_json import to_json
from frazil.errors import InvalidInput
from policies.resources import HOLDS_DATA, NAMED_BY
from stacks.spec.deployments import Deployment

FOLDER = Path("deployed")
LOCAL_FOLDER = Path(".frazil", "deployed")
"""The file of stand-ins is no part of a repository, like their state."""
DOCUMENTS_KEPT = 100
"""The most documents that the file lists, the newest. Terraform has forgotten the older ones already."""

_TYPE = matching("|".join(HOLDS_DATA), "a type that holds data", f"Write one of {', '.join(HOLDS_DATA)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An object that holds data, as Terraform's state knows it."""

    type: Annotated[str, "Its type in Terraform."]
    name: Annotated[str, "Its own name; its address where it has none."]
    stack: Annotated[str, "The stack that declares it."]
    address: Annotated[str, "Its name in Terraform, without the type."]
    settings: Annotated[tuple[str, ...], "Addresses of resources that only configure it, like a bucket's policy."] = ()
    reason: Annotated[str | None, "Why it was retired."] = None

    @property
    def place(self) -> tuple[str, str]:
        """The stack, and the full address in it."""
        return self.stack, f"{self.type}.{self.address}"


@declared
class Retired:
    """An object that deployment no longer manages: `Retired("confluent_kafka_topic", "orders", reason="…")`.

    Terraform forgets the object and does not delete it. Delete it by hand when its data are no longer needed.
    """

    type: Annotated[str, "Its type in Terraform.", _TYPE] = field(kw_only=False)
    name: Annotated[str, "Its name, as the error and the file of deployed objects give it.", NOT_EMPTY] = field(
        kw_only=False
    )
    reason: Annotated[str, "Why its data are no longer needed here.", matching(r"(?s).*\S.*", "a reason", "Write it")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """The content of the file."""

    environment: Annotated[str, "The environment's name."]
    objects: Annotated[tuple[Held, ...], "What is declared and holds data, sorted."] = ()
    retired: Annotated[tuple[Held, ...], "What was retired: Terraform forgets it and does not delete it."] = ()
    documents: Annotated[tuple[str, ...], "Addresses of documents that runs may read, oldest first."] = ()
    key_step: Annotated[int | None, "The step of the rotations of the jobs' keys."] = None

    def after(
        self, declared: Iterable[Held], documents: Iterable[str], retired: Sequence[Retired], *, is_open: bool = False
    ) -> Deployed:
        """Return the content after a synthesis that declares these objects and documents.

        `is_open`: both keys of `Protection` are turned, so any object may be deleted. Otherwise, raises `InvalidDeclaration`
        for each object that is listed and neither declared nor retired, and for each that is both declared and retired.
        """
        held = {each.place: each for each in declared}
        reasons = {(each.type, each.name): each.reason for each in retired}
        vanished = [each for each in self.objects if each.place not in held]
        problems = [*self._undecided(vanished, reasons, is_open=is_open), *_contradictions(held.values(), reasons)]
        if problems:
            raise InvalidDeclaration(problems)
        gone = {each.place: each for each in self.retired}
        if not is_open:
            gone |= {each.place: replace(each, reason=reasons[each.type, each.name]) for each in vanished}
        wanted = list(documents)
        return Deployed(
            environment=self.environment,
            objects=tuple(sorted(held.values(), key=_order)),
            retired=tuple(sorted((each for place, each in gone.items() if place not in held), key=_order)),
            documents=(*(each for each in self.documents if each not in wanted), *wanted)[-DOCUMENTS_KEPT:],
            key_step=self.key_step,
        )

    def _undecided(
        self, vanished: Iterable[Held], reasons: Mapping[tuple[str, str], str], *, is_open: bool
    ) -> Iterator[Problem]:
        for each in vanished:
            if not is_open and (each.type, each.name) not in reasons:
                what = f"it is no longer declared, and its deletion would lose {HOLDS_DATA.get(each.type, 'data')}"
                do = f'Declare it again, or write Retired("{each.type}", "{each.name}", reason="…") into `retired`'
                yield Problem(f"deployed {self.environment}: {each.type} {each.name}", what, do)

    def written(self) -> bytes:
        """Return the bytes of the file. The same content gives the same bytes."""
        return (json.dumps({"version": VERSION, **to_json(self)}, indent=1, sort_keys=True) + "\n").encode()


def _contradictions(held: Iterable[Held], reasons: Mapping[tuple[str, str], str]) -> Iterator[Problem]:
    for each in held:
        if (each.type, each.name) in reasons:
            what = "it is both declared and retired"
            yield Problem(
                f"retired: {each.type} {each.name}", what, "Remove its declaration, or this entry of `retired`"
            )


def _order(held: Held) -> tuple[str, str, str, str]:
    return held.stack, held.type, held.name, held.address


def file_of(deployment: Deployment, folder: str) -> Path:
    """Return the path of an environment's file. An empty `folder` means the usual one."""
    usual = LOCAL_FOLDER if deployment.is_local else FOLDER
    return (Path(folder) if folder else usual) / f"{deployment.name}.json"


def read(file: Path, environment: str) -> Deployed | None:
    """Read a file; None if it does not exist.

    Raises `InvalidInput` if it belongs to another environment, and `InvalidDeclaration` if it is invalid.
    """
    try:
        source = file.read_bytes()
    except FileNotFoundError:
        return None
    try:
        found = from_json(Deployed, members(source, "deployed"), "")
    except InvalidDeclaration as invalid:
        raise InvalidDeclaration([replace(each, path=f"{file}: {each.path}") for each in invalid.problems]) from None
    if found.environment != environment:
        do = "Take the committed file of this environment"
        raise InvalidInput(
            f"the file belongs to environment {found.environment}, not to {environment}", where=str(file), do=do
        )
    return found


def write(file: Path, deployed: Deployed) -> None:
    """Write a file, unless it has this content already."""
    replace_file(file, deployed.written())


def replace_file(file: Path, content: bytes) -> bool:
    """Replace a file in one step, unless it has this content already. Return whether it was replaced."""
    if file.is_file() and file.read_bytes() == content:
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.new")
    new.write_bytes(content)
    os.replace(new, file)
    return True


def held(stacks: Mapping[str, Mapping[str, Any]]) -> tuple[Held, ...]:
    """Return the objects that hold data among the resources of stacks. `stacks` are JSON by name."""
    return tuple(
        Held(
            type=kind,
            name=_name(kind, address, arguments),
            stack=stack,
            address=address,
            settings=tuple(_settings(kind, address, content)),
        )
        for stack, content in stacks.items()
        for kind, named in content.get("resource", {}).items()
        if kind in HOLDS_DATA
        for address, arguments in named.items()
    )


def _name(kind: str, address: str, arguments: Mapping[str, Any]) -> str:
    name = arguments.get(NAMED_BY.get(kind, "name"))
    return name if isinstance(name, str) and "${" not in name else address


def _settings(kind: str, address: str, content: Mapping[str, Any]) -> Iterator[str]:
    """Find the resources that only configure an object, like the `aws_s3_bucket_policy` of a bucket."""
    for other, named in sorted(content["resource"].items()):
        if other.startswith(f"{kind}_") and other not in HOLDS_DATA:
            for name, arguments in sorted(named.items()):
                if f"{kind}.{address}." in json.dumps(arguments):
                    yield f"{other}.{name}"


def forgotten(deployed: Deployed, stack: str, resources: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the `removed` blocks of a stack: Terraform removes these objects from its state and deletes none of them.

    `resources` are declared by the stack, by type and address; an object that is declared again is not forgotten.
    """
    retired = [each for each in deployed.retired if each.stack == stack]
    addresses = [part for each in retired for part in (each.place[1], *each.settings)]
    addresses += [each.partition("/")[2] for each in deployed.documents if each.startswith(f"{stack}/")]
    declared = {f"{kind}.{address}" for kind, named in resources.items() for address in named}
    return [
        {"from": address, "lifecycle": {"destroy": False}}
        for address in dict.fromkeys(addresses)
        if address not in declared
    ]
