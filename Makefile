# Every target prepares what it needs on a fresh machine with Python 3.11 and Java 17 or newer, once.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo deploy-demo test test-fast test-long check bench

PYTHON := .venv/bin/python

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: ## a virtual environment in .venv, and the jars in the user's cache
	@.ci/setup

demo: setup ## the whole story on real data: land, break, prove, query
	@.venv/bin/frazil demo

deploy-demo: ## deploy to stand-ins for AWS and Confluent: plan, review, change, swap a release, destroy; needs Go, Terraform, Node
	@.ci/setup-deploy
	@$(PYTHON) -m tests.demo.deploy

test: setup ## the tests that every change must pass
	@$(PYTHON) -m pytest -m "not long" --numprocesses 2 --dist loadfile

test-fast: setup ## the tests that need neither Spark nor a broker
	@$(PYTHON) -m pytest -m "not spark and not e2e and not long" --numprocesses 2 --dist loadfile

test-long: setup ## the tests that are too slow for every change
	@$(PYTHON) -m pytest -m long --timeout 1800

check: setup ## style, types, and who may import whom
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@$(PYTHON) -m mypy
	@.venv/bin/lint-imports

bench: setup ## speed and size on this machine, beside what people write first; ARGS="--help" tells what can be chosen
	@$(PYTHON) -m tests.bench $(ARGS)
