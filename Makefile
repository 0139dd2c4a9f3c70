# The front door. Bare `make` prints this help. A line of `##@` is a heading of the help.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
UV := uv run --frozen
LAB := $(UV) python -m lab
# From nothing each time: Sphinx warns only of pages that it reads.
SPHINX := $(UV) sphinx-build --quiet --fresh-env --nitpicky --fail-on-warning --keep-going --conf-dir docs
# Each process of the tests would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
# `worksteal` keeps all cores busy until the end.
WORKERS := -p no:rerunfailures --numprocesses auto --dist worksteal

.PHONY: help setup hooks check check-static format generate test-unit test parts due fetch-model test-agent-versions prove lab-build lab-up lab-down lab-status demo matrix chaos bench bench-moves bench-handover bench-departures bench-holds bench-heartbeats bench-streams bench-agent bench-decide bench-fleet bench-fairness bench-forecasts bench-memory bench-assignor bench-analytics docs docs-check release release-build verify-release

##@ Begin

help: ## Print this help
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  \033[1m%-19s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "\`make check\` for every change, \`make test\` before each merge, \`make test PART=…\` for each part that \`make due\` names."
	@echo "CLUSTER=embedded|kind|context chooses where the lab runs; docs/lab.md explains it."

setup: ## Install what Python needs, exactly as locked
	@command -v uv >/dev/null || { echo "uv not found; install it with: python3 -m pip install uv"; exit 1; }
	uv sync --frozen

hooks: setup ## Install the Git hooks: quick checks at each commit, types at each push
	$(UV) pre-commit install

##@ Check

# mypy and Sphinx use one core each, and what tests wait for is enough for them.
check: ## Tier 1, no root, three minutes: format, lint, types, layers, links of the documentation, unit tests
	uv lock --check
	$(UV) ruff format --check .
	$(UV) ruff check .
	$(UV) lint-imports
	$(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,--jobs 2) check-static test-unit

check-static:
	$(UV) mypy
	$(MAKE) --no-print-directory docs-check

format: ## Format the code and fix what ruff can fix
	$(UV) ruff format .
	$(UV) ruff check --fix .

generate: ## Write all generated files: the CRD, the generated pages, THIRD-PARTY-LICENSES.md and SECURITY-INSIGHTS.yml
	$(UV) python -m streamapp.api.crd
	$(UV) python -m docs.generate
	$(UV) python -m docs.third_party
	$(UV) python charts/generate.py
	$(UV) python -m release.listings.security_insights

test-unit: ## Unit tests, one worker for each core
	$(UV) pytest $(WORKERS)

##@ Test

# tests/parts/plan.toml has what the gate runs, and what each part runs.
PART :=
test: ## The merge gate, the same at each merge: root, Debian; with PART=holds that part of the other tests
	$(UV) python -m tests.parts $(if $(PART),run $(PART),gate)

parts: ## List the parts of the tests that are not in the gate, with their last runs
	@$(UV) python -m tests.parts list

due: ## List the parts whose files have changed since they last passed
	@$(UV) python -m tests.parts due

STORIES := 10500

prove: ## Sweep faults through the whole operator in virtual time, STORIES=10500 of them, with their progress
	$(UV) python -m tests.prove --runs $(STORIES)

SEEDS := 1
MINUTES := 8

chaos: ## Play all dangers at once under load, SEEDS="1 2 3", MINUTES=8 each: then all must converge and every record be counted (root)
	$(LAB) build
	$(LAB) up --reuse
	$(LAB) chaos $(SEEDS:%=--seed %) --minutes $(MINUTES) --json chaos.json --markdown chaos.md

# One version of each release that answers in its own way, and the common ones; tests/model/kinds.py has the same.
STREAMS := 2.7.2 3.1.2 3.2.3 3.3.2 3.8.1 3.9.2 4.1.2 4.2.1 4.3.1
BROKERS := 4.2.1 4.2.2 4.3.1 4.4.0

# What the part `model` compares with.
fetch-model:
	mvn --quiet --batch-mode --file agent/pom.xml --projects assignor test-compile
	for version in $(STREAMS); do \
	  mvn --quiet --batch-mode --file agent/agent/src/versions/pom.xml -Dkafka.version=$$version dependency:copy-dependencies; done
	for version in $(BROKERS); do \
	  mvn --quiet --batch-mode --file agent/agent/src/versions/pom.xml -Dkafka.part=kafka-group-coordinator -Dkafka.version=$$version dependency:copy-dependencies; done

# The agent on every release of Kafka Streams that it is meant for, against a real broker: in the part `versions`.
test-agent-versions:
	for version in 3.8.1 3.9.2 4.0.2 4.1.2 4.2.1 4.3.1; do \
	  mvn --quiet --batch-mode --file agent/agent/src/versions/pom.xml -Dkafka.version=$$version dependency:copy-dependencies; done
	mvn --quiet --batch-mode --file agent/agent/src/versions/pom.xml -Dkafka.part=kafka_2.13 dependency:copy-dependencies
	mvn --batch-mode --file agent/pom.xml -Dgroups=versions verify

##@ Lab

lab-build: ## Build the lab's programs and images; what is built already is found in the cache
	$(LAB) build

lab-up: ## Bring the lab up: Kubernetes and a Kafka broker on this machine
	$(LAB) up

lab-down: ## Stop the lab and remove what it wrote
	$(LAB) down

lab-status: ## Show the lab's parts and pods
	$(LAB) status

demo: ## Scale StreamApps up and down under load and a plain StatefulSet beside them, and report what each step cost (root, 10 minutes)
	$(LAB) up --reuse
	$(LAB) demo

matrix: ## Try the agent with every launcher and version, without a cluster (20 minutes)
	$(LAB) matrix --json matrix.json --markdown matrix.md

##@ Measure

bench: ## Measure held scale-ins beside plain ones, ten in each of two cases (root, 15 minutes)
	$(LAB) up --reuse
	$(LAB) bench --json bench.json --markdown bench.md

MOVES ?= on-demand on-demand-exactly-once standby

bench-moves: ## Measure how long the users of a task wait while it moves: 24 moves up and 24 down in each of MOVES (root, 40 minutes)
	$(LAB) up --reuse
	$(LAB) bench-moves $(MOVES:%=--way %) --json bench-moves.json --markdown bench-moves.md

bench-handover: ## Measure where the time of a move goes, part by part, on a bare broker (Java 17; 15 minutes)
	$(UV) python -m tests.benchmarks.handover --json bench-handover.json --markdown bench-handover.md

bench-departures: ## Measure how long users wait when a pod goes, by every way in which a pod goes, beside a plain StatefulSet (root, 90 minutes)
	$(LAB) build
	$(LAB) up --reuse
	$(LAB) bench-departures --json bench-departures.json --markdown bench-departures.md

bench-holds: ## Measure how long 4 → 2 pods are held without a copy to wait for, and by which reason, six times each (root, 25 minutes)
	$(LAB) build
	$(LAB) up --reuse
	$(LAB) bench-holds --json bench-holds.json --markdown bench-holds.md

bench-heartbeats: ## Measure how long a task of the streams protocol waits when its process leaves and comes back, with shorter heartbeats and without (Java 17; 10 minutes)
	mvn --quiet --batch-mode --file agent/agent/src/versions/pom.xml -Dkafka.version=4.2.1 dependency:copy-dependencies
	mvn --quiet --batch-mode --file agent/agent/src/versions/pom.xml -Dkafka.part=kafka_2.13 dependency:copy-dependencies
	mvn --batch-mode --file agent/pom.xml -Dgroups=heartbeats verify

bench-streams: ## Measure how long a task waits by what happens to its group: the streams protocol, with shorter heartbeats and without, and classic (Java 17; an hour)
	$(UV) python -m tests.benchmarks.streams --json bench-streams.json --markdown bench-streams.md

bench-agent: ## Measure what the agent costs: start-up, memory, processor time with 100 tasks (5 minutes)
	mvn --quiet --batch-mode --file agent/agent/src/versions/pom.xml -Dkafka.part=kafka_2.13 dependency:copy-dependencies
	mvn --batch-mode --file agent/pom.xml -Dgroups=bench verify

bench-decide: ## Measure one decision for applications of several sizes, up to 5,000 tasks on 200 pods
	$(UV) python -m tests.benchmarks.decisions

# Another checkout beside this one: `git worktree add --detach ../before COMMIT`, then SOURCES="../before .".
SIZES := 1x3 50x3 200x3
SOURCES := .
bench-fleet: ## Measure a fleet: raise to PATCH, requests, processor time and memory at rest, SIZES="50x3 200x3" (3 minutes each)
	$(UV) python -m tests.benchmarks.fleet --sizes $(SIZES) --sources $(SOURCES) --json bench-fleet.json

bench-fairness: ## Measure what one application that misbehaves costs 50 others (7 minutes for each of SOURCES)
	$(UV) python -m tests.benchmarks.fleet.fairness --sources $(SOURCES) --json bench-fairness.json

bench-forecasts: ## Measure predictions of changes, up to 5,000 tasks on 200 processes
	$(UV) python -m tests.benchmarks.forecasts

bench-memory: ## Measure what the readings of a busy minute take in the operator, for the same applications
	$(UV) python -m tests.benchmarks.reading_memory

bench-assignor: ## Measure the learner assignor, and what it moves, beside Kafka's own assignors on the same groups
	mvn --quiet --batch-mode --file agent/pom.xml --projects assignor test-compile dependency:build-classpath -Dmdep.outputFile=target/classpath
	cd agent/assignor && java -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
	  -cp "target/test-classes:target/classes:$$(cat target/classpath)" dev.streamapp.assignor.bench.Bench

bench-analytics: ## Measure the pipeline on a day of 100 applications, beside DuckDB and Polars (Java 17; 20 minutes)
	rm -rf .bench-analytics
	$(UV) python -m tests.benchmarks.pipeline --root .bench-analytics --json bench-analytics.json --markdown bench-analytics.md
	rm -rf .bench-analytics

##@ Release

RELEASE := dist/release
# The folder from which users will load the files, for the manifest of krew.
URL :=
# Where the images will be, for the bundle of OLM and for Artifact Hub, and where the public OpenPGP key is served.
REGISTRY :=
KEY_URL :=
KEY :=
OPENPGP_KEY :=

release: ## Build a release and sign it: KEY=release.pem OPENPGP_KEY=secret.gpg, into RELEASE=dist/release (root, 10 minutes)
	$(UV) python -m tests.parts due --strict
	$(UV) python -m release check-keys --key "$(KEY)" --openpgp-key "$(OPENPGP_KEY)"
	$(MAKE) --no-print-directory release-build
	$(UV) python -m release sign "$(RELEASE)" --key "$(KEY)" --openpgp-key "$(OPENPGP_KEY)"

release-build: ## Build a release without signatures: the same commit gives the same bytes (root)
	$(UV) python -m release build "$(RELEASE)" --url "$(URL)" --registry "$(REGISTRY)" --key-url "$(KEY_URL)" $(if $(OPENPGP_KEY),--openpgp-key "$(OPENPGP_KEY)")

verify-release: ## Check a release by its public keys in a fresh root file system: KEY=release.pub OPENPGP_KEY=release.asc (root)
	$(UV) python -m release verify "$(RELEASE)" --key "$(KEY)" --openpgp-key "$(OPENPGP_KEY)"

##@ Document

# A number for the pages of a release, and the tag or commit that has them.
VERSION := main
REVISION :=
docs: ## Build the documentation's site, site/index.html: of this tree, or VERSION=1.2.3 REVISION=v1.2.3
	$(UV) python -m docs.versions site --version "$(or $(VERSION),main)" --revision "$(REVISION)"

docs-check: ## Build every page of the documentation and follow all links and anchors between them, in seconds
	$(SPHINX) -b dummy . site/checked
