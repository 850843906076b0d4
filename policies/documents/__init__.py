"""The policies: one JSON document a role or bucket beside this file, with `{{placeholders}}`, and `fill` for those."""

from policies.documents.filling import CannotFill, fill, names, placeholders
from policies.documents.size import MANAGED_LIMIT, characters, split

__all__ = ["MANAGED_LIMIT", "CannotFill", "characters", "fill", "names", "placeholders", "split"]
