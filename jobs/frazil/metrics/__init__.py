"""The metrics of runs: a registry, and its exports to CloudWatch, Prometheus and OpenTelemetry."""
