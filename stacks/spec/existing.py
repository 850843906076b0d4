"""The rules and objects of an account: tags, the path in IAM, a boundary, a key, buckets, databases. Values only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Annotated

from frazil.declaration.checks.constraints import below, matching
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem
from frazil.declaration.checks.validation import FrozenMap
from infra.names import Names

FIXED_TAGS = ("frazil:environment", "frazil:stack")
"""The tags that every resource has. Permissions depend on the first."""
MOST_TAGS = 10
"""An object in S3 has at most ten tags, other resources 50. Deployment writes objects, so the lower limit counts for all."""
TAG_LIMITS = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-tagging.html"

_CHARACTERS = r"[\w .:/=+@-]"
TAG_KEY = matching(
    rf"(?i:(?!aws:|frazil:)){_CHARACTERS}{{1,128}}",
    "a tag's key",
    "Use 1 to 128 letters, digits, spaces, _ . : / = + - @, and begin neither with aws: nor frazil:",
)
TAG_VALUE = matching(
    rf"{_CHARACTERS}{{0,256}}", "a tag's value", "Use up to 256 letters, digits, spaces, _ . : / = + - @"
)
# A part that begins like the names of roles could let a deployer change roles that are not its own.
IAM_PATH = matching(
    r"(?!.*/frazil-)(?=.{1,512}$)/(?:[A-Za-z0-9_+=,.@-]+/)*",
    "a path in IAM",
    "Write it like /data-platform/, and begin no part with frazil-",
)
_BOUNDARY = matching(
    r"(?:arn:aws[a-z-]*:iam::(?:aws|[0-9]{12}):policy/(?:[A-Za-z0-9_+=,.@-]+/)*)?[A-Za-z0-9_+=,.@-]{1,128}",
    "the name or ARN of a policy",
    "Write its name if it has no path, or its ARN",
)
_KEY = matching(
    r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+",
    "the ARN of a key",
    "Write arn:aws:kms:<region>:<account>:key/<id>; an alias is no ARN of a key",
)
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
_BUCKET = matching(
    r"(?!xn--|sthree-|amzn-s3-demo-)(?!.*(?:-s3alias|--ol-s3|--x-s3|--table-s3)$)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]",
    "the name of a general purpose bucket",
    "Use 3 to 63 of a-z, 0-9 and -; a dot breaks TLS, and an access point is no bucket",
)
_DATABASE = matching("[a-z0-9_]{1,255}", "a database's name", "Use a-z, 0-9 and _")


@declared
class Buckets:
    """Existing buckets, by what they hold. Frazil creates those that are not given."""

    tables: Annotated[str | None, "The files of tables.", _BUCKET] = None
    tableflow: Annotated[str | None, "The files of Tableflow's tables: empty before the first one.", _BUCKET] = None
    artifacts: Annotated[str | None, "Releases, documents, desired state.", _BUCKET] = None
    logs: Annotated[str | None, "Logs of runs, and Athena's results.", _BUCKET] = None

    @property
    def given(self) -> dict[str, str]:
        """The names of the given buckets, by what they hold."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {what: name for what, name in values.items() if name is not None}


_NO_BUCKETS = Buckets()


@declared
class Existing:
    """The account's rules for new resources, and its objects that deployment uses, and neither creates nor changes."""

    tags: Annotated[
        Mapping[Annotated[str, TAG_KEY], Annotated[str, TAG_VALUE]], "Tags of all resources, besides Frazil's two."
    ] = FrozenMap()
    iam_path: Annotated[str, "The path of roles and policies in IAM.", IAM_PATH] = "/"
    boundary: Annotated[str | None, "The permissions boundary of all roles: its name or ARN.", _BOUNDARY] = None
    key_arn: Annotated[str | None, "The KMS key of buckets, secrets, logs and alarms.", _KEY] = None
    buckets: Annotated[Buckets, "Buckets."] = _NO_BUCKETS
    databases: Annotated[
        tuple[Annotated[str, _DATABASE], ...],
        "Namespaces whose Glue databases exist. Policies name each table in them.",
    ] = ()

    def _contradictions(self) -> Iterator[Problem]:
        if len(self.tags) + len(FIXED_TAGS) > MOST_TAGS:
            what = (
                f"{len(self.tags)} tags and the {len(FIXED_TAGS)} of Frazil exceed the {MOST_TAGS} of an object in S3"
            )
            yield Problem("tags", f"{what} ({TAG_LIMITS})", f"Write at most {MOST_TAGS - len(FIXED_TAGS)}")
        keys = [key.casefold() for key in self.tags]
        for key in self.tags:
            if keys.count(key.casefold()) > 1:
                what = "IAM does not distinguish upper and lower case, so this key is there twice"
                yield Problem(below("tags", key), what, "Remove one")

    def problems(self, names: Names) -> Iterator[Problem]:
        """Find what cannot be used in the environment with these names."""
        here = [names.partition, "kms", names.region]
        if self.key_arn is not None and self.key_arn.split(":")[1:4] != here:
            yield Problem("existing.key_arn", f"the key is not in {names.region}", "Give a key of this region")
        yield from self._boundary_problems(names)
        given = self.buckets.given
        for what, bucket in given.items():
            if bucket == names.bucket("state"):
                do = "Give another: roles may not read Terraform's states"
                yield Problem(f"existing.buckets.{what}", f"{bucket} is the bucket of Terraform's states", do)
            elif [*given.values()].count(bucket) > 1:
                yield Problem(f"existing.buckets.{what}", f"{bucket} is given twice", "Give a bucket for each")
            for other in {each.name for each in fields(Buckets)} - given.keys():
                if bucket == names.bucket(other):
                    made = f"{bucket} is the name of the bucket that deployment creates for {other}"
                    yield Problem(f"existing.buckets.{what}", made, "Give another")

    def _boundary_problems(self, names: Names) -> Iterator[Problem]:
        if self.boundary is None:
            return
        _, partition, _, _, account, _ = names.boundary_arn.split(":", 5)
        if partition != names.partition or account not in ("aws", names.account):
            what = f"the policy is not of account {names.account}"
            yield Problem("existing.boundary", what, "Give a policy of this account")
        own = names.iam_arn("policy", f"{names.prefix}-")  # the deployer's rights do not end at a slash
        if names.boundary.startswith(f"{names.prefix}-") or names.boundary_arn.startswith(own):
            what = f"a deployer may change policies that begin with {own}"
            yield Problem("existing.boundary", what, "Give the boundary another name")
