"""The configuration of Alertmanager: who is notified of an alarm.

https://prometheus.io/docs/alerting/latest/configuration/
"""

from __future__ import annotations

from enum import StrEnum

from frazil.metrics.alarm_rules import Severity


class Receiver(StrEnum):
    """A receiver of notifications. Its secret is in a file next to the configuration, which Alertmanager reads."""

    SLACK = "slack"
    PAGERDUTY = "pagerduty"
    EMAIL = "email"
    WEBHOOK = "webhook"


_TITLE = '"{{ .CommonAnnotations.summary }}"'
_SETTINGS = {
    Receiver.SLACK: f"""    slack_configs:
      - api_url_file: slack_url # its text is the URL of an incoming webhook
        channel: "#data"
        send_resolved: true
        title: {_TITLE}
        text: "{{{{ range .Alerts }}}}{{{{ .Annotations.summary }}}} ({{{{ .Annotations.runbook_url }}}}){{{{ end }}}}"
""",
    Receiver.PAGERDUTY: f"""    pagerduty_configs:
      - routing_key_file: pagerduty_key # its text is an integration key of the Events API v2
        description: {_TITLE}
""",
    Receiver.EMAIL: """    email_configs:
      - to: data@example.com
        from: alertmanager@example.com
        smarthost: smtp.example.com:587
        auth_username: alertmanager@example.com
        auth_password_file: smtp_password
        send_resolved: true
""",
    Receiver.WEBHOOK: """    webhook_configs:
      - url: http://127.0.0.1:9099/alarms
        send_resolved: true
""",
}


def configuration(receiver: Receiver) -> str:
    """Return the configuration in YAML: alarms go to one receiver, those to be looked at at once in ten seconds."""
    return f"""route:
  receiver: {receiver}
  group_by: [alertname, pipeline]
  group_wait: 5m
  repeat_interval: 24h
  routes:
    - matchers: [severity="{Severity.PAGE}"]
      receiver: {receiver}
      group_wait: 10s
      repeat_interval: 4h
receivers:
  - name: {receiver}
{_SETTINGS[receiver]}"""
