"""A workgroup of Athena, in which readers run queries."""

from __future__ import annotations

from infra.tf import (
    AthenaWorkgroup,
    AthenaWorkgroupConfiguration,
    AthenaWorkgroupConfigurationResultConfiguration,
    AthenaWorkgroupConfigurationResultConfigurationEncryptionConfiguration,
    Construct,
)

_GIB = 1024**3


class QueryWorkgroup(Construct):
    """Its settings count for every query, whatever a client asks: where results are, and the key that encrypts them."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        workgroup: str,
        results: str,
        key_arn: str,
        most_scanned_gb: int | None,
        is_disposable: bool,
    ) -> None:
        """`results` is the place of results, `s3://bucket/prefix/`. `is_disposable`: it is deleted with its saved queries."""
        super().__init__(scope, name)
        encryption = AthenaWorkgroupConfigurationResultConfigurationEncryptionConfiguration(
            encryption_option="SSE_KMS", kms_key_arn=key_arn
        )
        AthenaWorkgroup(
            self,
            "workgroup",
            name=workgroup,
            description="Readers query tables.",
            force_destroy=is_disposable,
            configuration=AthenaWorkgroupConfiguration(
                enforce_workgroup_configuration=True,
                publish_cloudwatch_metrics_enabled=True,
                bytes_scanned_cutoff_per_query=None if most_scanned_gb is None else most_scanned_gb * _GIB,
                result_configuration=AthenaWorkgroupConfigurationResultConfiguration(
                    output_location=results, encryption_configuration=encryption
                ),
            ),
        )
