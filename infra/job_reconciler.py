"""The reconciler of one job as a function, called when a run of an application changes its state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from frazil.release.manifest import Architecture
from frazil.rollout.function_settings import HANDLER, TIMEOUT_SECONDS
from infra.tf import (
    CloudwatchEventRule,
    CloudwatchEventTarget,
    CloudwatchLogGroup,
    CloudwatchMetricAlarm,
    Construct,
    LambdaFunction,
    LambdaFunctionEnvironment,
    LambdaFunctionLoggingConfig,
    LambdaPermission,
    TerraformResource,
)

RUNTIME = "python3.11"
"""The Python that the program is tested with."""
MEMORY_MB = 512
_ARCHITECTURES = {Architecture.ARM64: "arm64", Architecture.X86_64: "x86_64"}
STATES = ("RUNNING", "SUCCESS", "FAILED", "CANCELLED")
"""The states of a run after which something may be decided."""


class ReconcilerFunction(Construct):
    """The function, its log, and the rule that calls it with events of EMR Serverless."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        function: str,
        bucket: str,
        program: str,
        architecture: Architecture,
        role_arn: str,
        variables: Mapping[str, str],
        application_ids: Sequence[str],
        log_group: str,
        log_days: int,
        key_arn: str,
        after: Sequence[TerraformResource],
    ) -> None:
        """`program`: the key of its code in the bucket. `after`: the rights of its role, which it needs at its first call."""
        super().__init__(scope, name)
        log = CloudwatchLogGroup(self, "log", name=log_group, retention_in_days=log_days, kms_key_id=key_arn)
        made = LambdaFunction(
            self,
            "function",
            function_name=function,
            description="Brings the runs of a job to their desired state.",
            role=role_arn,
            runtime=RUNTIME,
            handler=HANDLER,
            architectures=[_ARCHITECTURES[architecture]],
            s3_bucket=bucket,
            s3_key=program,
            timeout=TIMEOUT_SECONDS,
            memory_size=MEMORY_MB,
            environment=LambdaFunctionEnvironment(variables=dict(variables)),
            logging_config=LambdaFunctionLoggingConfig(log_format="Text", log_group=log.name),
            depends_on=list(after),
        )
        pattern = {
            "source": ["aws.emr-serverless"],
            "detail-type": ["EMR Serverless Job Run State Change"],
            "detail": {"applicationId": list(application_ids), "state": list(STATES)},
        }
        rule = CloudwatchEventRule(
            self, "rule", name=function, description="A run changed its state.", event_pattern=json.dumps(pattern)
        )
        CloudwatchEventTarget(self, "target", rule=rule.name, arn=made.arn)
        LambdaPermission(
            self,
            "permission",
            statement_id="CalledByItsRule",
            action="lambda:InvokeFunction",
            function_name=made.function_name,
            principal="events.amazonaws.com",
            source_arn=rule.arn,
        )
        self.arn: str = made.arn
        """The function's ARN, known when it exists."""


_FAILED = "The reconciler fails, or no generation can run. frazil jobs reconcile; docs/releases-and-runs.md"
_ROLLED_BACK = "The deployed generation was rolled back. frazil jobs list, logs; docs/releases-and-runs.md"
_SILENT = "A pipeline reports nothing. The reconciler's log names it. frazil jobs logs; docs/running.md"


class ReconcilerAlarms(Construct):
    """The alarms of a job's reconciler: its passes fail, the deployed generation was rolled back, or a pipeline is silent."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        function: str,
        job: str,
        namespace: str,
        prefix: str,
        topic_arn: str,
        is_counting: bool,
    ) -> None:
        """`is_counting`: whether the function counts silent pipelines."""
        super().__init__(scope, name)
        common: dict[str, Any] = {
            "comparison_operator": "GreaterThanThreshold",
            "threshold": 0,
            "period": 300,
            "treat_missing_data": "notBreaching",
            "alarm_actions": [topic_arn],
            "ok_actions": [topic_arn],
        }
        of_job: dict[str, Any] = {"namespace": namespace, "dimensions": {"job": job}, "statistic": "Maximum"}
        of_function: dict[str, Any] = {
            "namespace": "AWS/Lambda",
            "dimensions": {"FunctionName": function},
            "statistic": "Sum",
        }
        alarms = [
            ("failed", "reconciler-failed", "Errors", 2, of_function, _FAILED),
            ("rolled-back", "rolled-back", "rolled_back", 1, of_job, _ROLLED_BACK),
            ("silent-pipelines", "silent-pipelines", "silent_pipelines", 2, of_job, _SILENT),
        ]
        for address, what, metric, periods, source, meaning in alarms if is_counting else alarms[:2]:
            CloudwatchMetricAlarm(
                self,
                address,
                alarm_name=f"{prefix}-{job}-{what}",
                alarm_description=meaning,
                metric_name=metric,
                evaluation_periods=periods,
                **source,
                **common,
            )
