"""Probes of a deployed environment: what only a real run can show, each as a value."""
