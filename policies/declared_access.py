"""The access that a deployment declares, and that no stack's JSON says by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from frazil.declaration.checks.validation import FrozenMap


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredAccess:
    """The access that a deployment declares, as trusted code knows it. Left out, none is declared.

    `principals` are the ARNs that may assume roles, `external_ids` the ids of those that need one, `subjects` the workflows.
    `prefixes` are those of topics and subjects with one role binding for all of them. `administers`: Frazil's account
    administers a cluster that is only looked up.
    """

    principals: frozenset[str] = frozenset()
    external_ids: Mapping[str, str] = FrozenMap()
    subjects: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    administers: bool = False


NONE_DECLARED = DeclaredAccess()
