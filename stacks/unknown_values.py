"""Texts with values that Terraform knows only when it runs.

Documents are checked when they are created, and a check cannot judge an unknown value. So they are created with placeholders
of the right shape. Then each placeholder in the text is replaced by the expression that Terraform fills in.
"""

from __future__ import annotations

from collections.abc import Mapping

from infra.tf import Construct, Fn, TerraformLocal

BOOTSTRAP = "bootstrap.frazil.invalid:9092"
REGISTRY = "https://registry.frazil.invalid"
APPLICATION = "frazil0application0of0later"
ENVIRONMENT_DIGEST = "e" * 63 + "0"


def filled(text: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders of a text by expressions, and escape everything else that Terraform would evaluate."""
    text = text.replace("${", "$${").replace("%{", "%%{")
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


class Text:
    """A text with unknown values, and its hash, which Terraform computes from the bytes that it writes."""

    def __init__(self, scope: Construct, name: str, text: str) -> None:
        self.text = text
        self.sha256 = str(Fn.sha256(TerraformLocal(scope, name, text).as_string))
