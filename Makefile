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
# One process for each core; `worksteal` keeps all of them busy until the end.
WORKERS := --numprocesses auto --dist worksteal

.PHONY: help setup hooks check check-static format generate test-unit test test-slow test-sweep test-java test-hostile test-model test-spark test-analytics test-by-parts test-by-computing test-lab-parts test-lab test-brokers test-streams-versions test-agent-versions prove prove-judge prove-machine test-laws test-proofs test-alerts lab-build lab-up lab-down lab-status demo matrix bench bench-moves bench-handover bench-departures bench-heartbeats bench-agent bench-decide bench-fleet bench-fairness bench-forecasts bench-memory bench-assignor bench-analytics docs docs-check release release-build verify-release test-release

##@ Begin

help: ## Print this help
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  \033[1m%-19s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "Tiers: \`make check\` for every change, \`make test\` at each merge, \`make test-laws test-proofs test-alerts prove\` every night."
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
	$(MAKE) --no-print-directory --jobs 2 check-static test-unit

check-static:
	$(UV) mypy
	$(MAKE) --no-print-directory docs-check

format: ## Format the code and fix what ruff can fix
	$(UV) ruff format .
	$(UV) ruff check --fix .

generate: ## Write all generated files: the CRD, the generated pages and THIRD-PARTY-LICENSES.md
	$(UV) python -m streamapp.api.crd
	$(UV) python -m docs.generate
	$(UV) python -m docs.third_party
	$(UV) python charts/generate.py

test-unit: ## Unit tests, one worker for each core
	$(UV) pytest $(WORKERS)

##@ Test

test: check ## Tier 2, root, an hour: tier 1, slow unit tests, Java, Spark, the lab
	$(MAKE) --no-print-directory --jobs 2 test-by-parts test-by-computing
	$(LAB) test

# The lab itself has both cores: its gaps are measured. Before it, what mostly waits and what only computes go side by
# side; no clock decides on the results of the latter, so it has the lowest priority.
COMPUTED := .test-by-computing.log
test-by-parts: test-java
	$(MAKE) --no-print-directory test-hostile
	$(MAKE) --no-print-directory test-model CASES=300 STREAMS="3.8.1 4.2.1" BROKERS=4.2.1
	$(LAB) build --launchers
	$(MAKE) --no-print-directory test-lab-parts
	$(MAKE) --no-print-directory test-slow

test-by-computing:
	@echo "meanwhile faults and Spark are played; their output comes at their end, and is in $(COMPUTED) until then"
	@nice -n 19 $(MAKE) --no-print-directory --jobs 1 test-sweep test-spark >$(COMPUTED) 2>&1 \
	  || { cat $(COMPUTED); exit 1; }
	@cat $(COMPUTED)

test-spark:
	$(UV) pytest -m "analytics and not cluster" tests/analytics

test-slow: ## Unit tests that start processes or wait on real time: two minutes
	$(UV) pytest $(WORKERS) -m slow --ignore tests/prove

test-sweep: ## Unit tests that sweep faults, with each safeguard and gate taken away in turn: a few minutes
	$(UV) pytest $(WORKERS) -m slow tests/prove

test-java: ## Unit tests of the demo application, and of what runs inside an application's JVM
	mvn --quiet --batch-mode --file examples/counter/pom.xml verify
	mvn --quiet --batch-mode --file agent/pom.xml verify

test-hostile: ## The agent in JVMs that make it hard: other versions of Java, other agents, missing modules (Java 17; 2 minutes)
	$(UV) pytest $(WORKERS) -m hostile tests/hostile

test-analytics: ## The pipeline on a real Spark and on a cluster of it, its tables beside DuckDB's, killed at every stage (Java 17)
	$(UV) pytest -m analytics tests/analytics

test-lab: ## Tests on real parts: the lab's own life, then all that runs in it
	$(LAB) build --launchers
	$(MAKE) --no-print-directory test-lab-parts
	$(LAB) test

test-lab-parts:
	$(UV) pytest -m registries tests/lab_unit tests/release
	$(UV) pytest -m brokers -p no:randomly tests/brokers
	$(UV) pytest -m chart tests/alerts tests/chart tests/release
	$(UV) pytest -m lifecycle tests/lab_unit/clusters
	[[ "$${CLUSTER:-embedded}" != embedded ]] || $(UV) pytest -p no:randomly -m lifecycle tests/lifecycle

test-brokers: ## Kafka's security on real brokers: TLS, SASL, tokens, ACLs, rotation (Java 17; two minutes)
	$(UV) pytest -m brokers -p no:randomly tests/brokers

test-streams-versions: ## Tier 3: the streams protocol on each pair of broker and client releases: read, standbys, eviction (10 minutes)
	STREAMS_BROKERS="4.2.1 4.3.1 4.4.0" STREAMS_CLIENTS="4.2.1 4.3.1 4.4.0" $(UV) pytest -m brokers -p no:randomly -rP tests/brokers/test_40_streams_versions.py

test-agent-versions: ## The agent on every release of Kafka Streams that it is meant for, against a real broker (10 minutes)
	for version in 3.8.1 3.9.2 4.0.2 4.1.2 4.2.1 4.3.1; do \
	  mvn --quiet --batch-mode --file agent/agent/src/versions/pom.xml -Dkafka.version=$$version dependency:copy-dependencies; done
	mvn --quiet --batch-mode --file agent/agent/src/versions/pom.xml -Dkafka.part=kafka_2.13 dependency:copy-dependencies
	mvn --batch-mode --file agent/pom.xml -Dgroups=versions verify

# One version of each release that answers in its own way, and the common ones; tests/model/kinds.py has the same.
CASES := 10000
STREAMS := 2.7.2 3.1.2 3.2.3 3.3.2 3.8.1 3.9.2 4.1.2 4.2.1 4.3.1
BROKERS := 4.2.1 4.2.2 4.3.1 4.4.0

test-model: ## The model of the assignors beside the Java classes, CASES=10000 random cases for each version (Java 17; 10 minutes)
	mvn --quiet --batch-mode --file agent/pom.xml --projects assignor test-compile
	for version in $(STREAMS); do \
	  mvn --quiet --batch-mode --file agent/agent/src/versions/pom.xml -Dkafka.version=$$version dependency:copy-dependencies; done
	for version in $(BROKERS); do \
	  mvn --quiet --batch-mode --file agent/agent/src/versions/pom.xml -Dkafka.part=kafka-group-coordinator -Dkafka.version=$$version dependency:copy-dependencies; done
	MODEL_CASES=$(CASES) MODEL_STREAMS="$(STREAMS)" MODEL_BROKERS="$(BROKERS)" $(UV) pytest $(WORKERS) -m model tests/model

##@ Prove

STORIES := 10500

prove: ## Tier 3: sweep faults through the whole operator in virtual time, STORIES=10500 of them, with their progress
	$(UV) python -m tests.prove --runs $(STORIES)

prove-judge: ## Remove each safeguard of the operator in turn, and check that the sweep notices
	$(UV) pytest -m judge tests/prove

prove-machine: ## Play users and faults at random against the whole operator, judged by README's guarantees alone (20 minutes)
	$(UV) python -m tests.prove.second_judge

test-laws: ## Tier 3: every law on a thousand examples that Hypothesis draws anew (6 minutes)
	HYPOTHESIS_PROFILE=thorough $(UV) pytest $(WORKERS) -m hypothesis --timeout 900

test-proofs: ## Tier 3: the hold in the lab against all that a cluster may do to it, every kind of application (root, 45 minutes)
	$(LAB) build --analytics --keda --earlier
	$(LAB) test -m proofs tests/lab

test-alerts: ## Tier 3: fire each alert of the chart in a real Prometheus, and ask each query of the dashboard (20 minutes the first time)
	$(UV) pytest $(WORKERS) -m alerts tests/alerts

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

bench-moves: ## Measure how long the users of a task wait while it moves, way by way: eight ways (root, 70 minutes)
	$(LAB) up --reuse
	$(LAB) bench-moves --json bench-moves.json --markdown bench-moves.md

bench-handover: ## Measure where the time of a move goes, part by part, on a bare broker (Java 17; 15 minutes)
	$(UV) python -m tests.benchmarks.handover --json bench-handover.json --markdown bench-handover.md

bench-departures: ## Measure how long users wait when a pod goes, by every way in which a pod goes, beside a plain StatefulSet (root, 90 minutes)
	$(LAB) build
	$(LAB) up --reuse
	$(LAB) bench-departures --json bench-departures.json --markdown bench-departures.md

bench-heartbeats: ## Measure how long a task of the streams protocol waits when its process leaves and comes back, with shorter heartbeats and without (Java 17; 10 minutes)
	mvn --quiet --batch-mode --file agent/agent/src/versions/pom.xml -Dkafka.version=4.2.1 dependency:copy-dependencies
	mvn --quiet --batch-mode --file agent/agent/src/versions/pom.xml -Dkafka.part=kafka_2.13 dependency:copy-dependencies
	mvn --batch-mode --file agent/pom.xml -Dgroups=heartbeats verify

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
KEY :=
OPENPGP_KEY :=

release: ## Build a release and sign it: KEY=release.pem OPENPGP_KEY=secret.gpg, into RELEASE=dist/release (root, 10 minutes)
	$(UV) python -m release check-keys --key "$(KEY)" --openpgp-key "$(OPENPGP_KEY)"
	$(MAKE) --no-print-directory release-build
	$(UV) python -m release sign "$(RELEASE)" --key "$(KEY)" --openpgp-key "$(OPENPGP_KEY)"

release-build: ## Build a release without signatures: the same commit gives the same bytes (root)
	$(UV) python -m release build "$(RELEASE)" --url "$(URL)"

verify-release: ## Check a release by its public keys in a fresh root file system: KEY=release.pub OPENPGP_KEY=release.asc (root)
	$(UV) python -m release verify "$(RELEASE)" --key "$(KEY)" --openpgp-key "$(OPENPGP_KEY)"

test-release: ## A whole release from two clones: same bytes, signed without a network, verified, arm64 started (root, 30 minutes)
	$(UV) pytest -m release tests/release

##@ Document

docs: ## Build the documentation's site: site/index.html
	$(SPHINX) -b html . site

docs-check: ## Build every page of the documentation and follow all links and anchors between them, in seconds
	$(SPHINX) -b dummy . site/checked
