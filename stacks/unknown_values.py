"""Later: text of which Terraform knows a part only when it runs.

Documents are checked when they are made, and a check cannot judge what is not known yet. So they are made with placeholders
of the right shape, and then, as text, each placeholder becomes what Terraform will fill in.
"""

from __future__ import annotations

from collections.abc import Mapping

from infra.tf import Construct, Fn, TerraformLocal

BOOTSTRAP = "bootstrap.frazil.invalid:9092"
REGISTRY = "https://registry.frazil.invalid"
APPLICATION = "frazil0application0of0later"
ENVIRONMENT_DIGEST = "e" * 63 + "0"


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders filled, and nothing else in it that Terraform would evaluate."""
    text = text.replace("${", "$${").replace("%{", "%%{")
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


class Text:
    """A text that is known later, and its hash: Terraform computes it of the very bytes that it writes."""

    def __init__(self, scope: Construct, name: str, text: str) -> None:
        self.text = text
        self.sha256 = str(Fn.sha256(TerraformLocal(scope, name, text).as_string))

    def beginning(self, length: int) -> str:
        """The first characters of the hash."""
        return str(Fn.substr(self.sha256, 0, length))
