# Every target installs what it needs, once, on a machine with Python 3.11 to 3.13 and Java 17 or newer.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo deploy-demo test test-fast test-long check bench bench-peers

PYTHON := .venv/bin/python
# Tests and demos start hundreds of processes. Each would compile its modules if the shell forbids to store bytecode.
export PYTHONDONTWRITEBYTECODE :=

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: ## create .venv and fetch the jars into the user's cache
	@.ci/setup

demo: ## land, break, verify and query real data on this machine
	@.ci/setup demo
	@.venv/bin/frazil local demo

deploy-demo: ## deploy to stand-ins for AWS and Confluent; needs Go, Terraform, Node
	@.ci/setup-deploy
	@$(PYTHON) -m tests.demo.deploy

test: setup ## run the tests that every change must pass
	@$(PYTHON) -m pytest -m "not long" --numprocesses 3 --dist loadfile --no-loadscope-reorder

test-fast: setup ## run the tests that need neither Spark nor a broker
	@$(PYTHON) -m pytest -m "not spark and not e2e and not long" --numprocesses 2 --dist loadfile

test-long: setup ## run the tests that are too slow for every change
	@$(PYTHON) -m pytest -m long --timeout 1800

check: setup ## check style, types and import contracts
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@$(PYTHON) -m mypy
	@.venv/bin/lint-imports

bench: setup ## measure speed and size; ARGS="--help" lists the options
	@$(PYTHON) -m bench $(ARGS)

bench-peers: setup ## measure Flink SQL and Kafka Connect next to Frazil; ARGS as above
	@$(PYTHON) -m bench.peers $(ARGS)
