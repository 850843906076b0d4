"""Declarations as bytes in the artifact bucket, named by their content."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.declaration import Pipeline, canonical, digest
from frazil.declaration.documents.document import document
from infra.tf import Construct, S3Object, TerraformResource, TerraformResourceLifecycle

PREFIX = "documents"


class PipelineDocument(Construct):
    """The document of some pipelines. Changed pipelines are another object, at another address.

    So Terraform can forget the old object instead of deleting it: a run that has not ended may still read it.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        pipelines: Sequence[Pipeline],
        bucket: str,
        key_arn: str,
    ) -> None:
        """Raises `InvalidDeclaration` if two of the pipelines contradict each other."""
        super().__init__(scope, name)
        written = canonical(document(pipelines))
        self.digest = digest(written)
        self.key = f"{PREFIX}/{self.digest}.json"
        self.uri = f"s3://{bucket}/{self.key}"
        written_down = S3Object(
            self,
            f"object-{self.digest[:16]}",
            bucket=bucket,
            key=self.key,
            # Terraform would take `${` in a declaration for its own.
            content=written.decode().replace("${", "$${").replace("%{", "%%{"),
            content_type="application/json",
            server_side_encryption="aws:kms",
            kms_key_id=key_arn,
            lifecycle=TerraformResourceLifecycle(create_before_destroy=True),
        )
        self.ready: tuple[TerraformResource, ...] = (written_down,)
        """What must exist before any job gets its address."""
