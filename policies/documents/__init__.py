"""The policies: a JSON document with `{{placeholders}}` for each role or bucket, and `fill`, which fills them."""

from policies.documents.filling import Below, CannotFill, fill, names, placeholders
from policies.documents.size import MANAGED_LIMIT, characters, split

__all__ = ["MANAGED_LIMIT", "Below", "CannotFill", "characters", "fill", "names", "placeholders", "split"]
