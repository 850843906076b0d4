"""Declarations as JSON documents."""
