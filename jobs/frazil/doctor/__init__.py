"""Checks of what pipelines need in an environment: each a value, made by a step that asks one service."""
