"""Role bindings on many objects of one kind, of which only one waits until all are in effect.

The provider waits 90 s after each binding. So the bindings of the objects do not wait, and one more does, after all of them. Its
object does not exist, so it opens nothing. Another set of bindings replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence

from frazil.declaration import digest
from infra.confluent.resource import Declared
from infra.service_account import Account

READ = "DeveloperRead"
OWN = "ResourceOwner"
PREFIX = "frazil-"
"""What the names of Frazil's own consumer groups begin with, and those of objects that do not exist."""


def bind_each(
    account: Account, kind: str, role: str, crn: str, names: Sequence[str], *, also: Sequence[Declared] = ()
) -> list[Declared]:
    """Give an account a role on each object of a kind, `topic` or `subject`, whose CRNs begin with `crn`.

    Return what must exist until all bindings and those of `also` are in effect.
    """
    if not names:
        return []
    bound = [account.bind(f"{kind}-{name}", role, f"{crn}/{kind}={name}", is_awaited=False) for name in names]
    named = digest("\n".join(names).encode())[:16]
    awaited = account.bind(
        f"{kind}s-in-effect", READ, f"{crn}/{kind}={PREFIX}waited-{named}", depends_on=[*bound, *also]
    )
    return [awaited]
