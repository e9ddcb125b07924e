# make demo, make test: all set-up happens by itself, once. Needed on the machine: make, Python 3.11 or 3.12, Java 17 to 22.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
PACKAGES := .venv/.packages
JARS := .cache/jars/.ready
CLASSES := .cache/.classes-ready
# Only for runs inside this checkout: every task finds the interpreter of .venv, and the tests need no display.
export MPLBACKEND := Agg
# Where this is set, each of some hundred processes of the tests compiles what it imports anew: 35 of 750 CPU seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test session-tests other-tests quick quick-dump quick-rest test-broker bundle tables rules bench fuzz sweep lint types lock clean java

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target what; do printf '%-12s %s\n' "$$target" "$$what"; done

demo: $(JARS) ## audit a real incident (examples/hanging-transaction) and show what an operator sees
	@rm -rf out/demo # that of another version has other columns
	@printf '\n$$ eo-audit run examples/hanging-transaction/dumps --out out/demo\n\n'
	@code=0; $(BIN)/eo-audit run examples/hanging-transaction/dumps --out out/demo || code=$$?; \
	printf '\neo-audit ended with exit code %s (0 pass, 1 fail, 2 unknown; 10 and more: it could not audit).\n' "$$code"; \
	test "$$code" -lt 10
	@$(MAKE) $(CLASSES) || echo "Later starts take some seconds longer."

# Two processes for the tests: a Spark session keeps about one core busy, so the tests that do without it run beside it, and the one audit
# that takes as long as a hundred others. Not by a plugin: each worker of one would plan all audits anew. An end with 5 says that none of
# TESTS is of that half.
test: $(JARS) ## all tests, those with a Spark session beside the others; make quick is the short way
	@$(MAKE) $(CLASSES) || echo "A dozen starts of Java take some seconds longer."
	@echo "Two halves of the tests beside each other; each tells what it found when it is done (minutes)."
	@$(MAKE) -j2 $(if $(filter output-sync,$(.FEATURES)),-O) session-tests other-tests

session-tests:
	@$(BIN)/python -m pytest -m "spark and not own_session" $(TESTS) || test $$? -eq 5

other-tests:
	@$(BIN)/python -m pytest -m "not spark or own_session" $(TESTS) || test $$? -eq 5

# No Java can be found there, so a test that starts one without saying so fails. In two processes, as `test`, where all of them are run.
QUICK = JAVA_HOME=/no-java-in-make-quick $(BIN)/python -m pytest -m "not spark and not slow"
QUICK_HALF := tests/dump tests/cli
quick: $(PACKAGES) ## what needs no Java: rules, law, words, dump reader, house rules (under a minute)
	@$(if $(TESTS),$(QUICK) $(TESTS),$(MAKE) -j2 $(if $(filter output-sync,$(.FEATURES)),-O) quick-dump quick-rest)

quick-dump:
	@$(QUICK) $(QUICK_HALF)

quick-rest:
	@$(QUICK) tests $(addprefix --ignore=,$(QUICK_HALF))

bench: $(CLASSES) ## the figures of benchmarks/, side by side with what a user would do instead (takes minutes)
	@$(BIN)/python -m benchmarks $(BENCH)

fuzz: $(PACKAGES) ## thousands of lying and damaged dumps: nothing lost, nothing invented, all readers agree (SEED=, COUNT=)
	@$(BIN)/python -m tests.fuzz $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT))

cluster: $(JARS) ## model clusters, healthy and with one planted fault each (SEEDS=0:300; minutes for each thousand)
	@$(BIN)/python -m tests.cluster --seeds $(or $(SEEDS),0:300)
	@$(BIN)/python -m tests.cluster --seeds $(or $(SEEDS),0:300) --faults

sweep: $(JARS) ## one thing changed at every place of two real dumps: which changes no rule sees (some minutes)
	@$(BIN)/python -m tests.sweep

test-broker: $(JARS) ## real brokers on loopback, of three releases and three of a cluster: the audit equals what they answer (needs a JDK; 12 minutes)
	@$(BIN)/python -m pytest -m broker tests/broker

bundle: $(JARS) ## one archive for a machine without a network: build/eo-audit-bundle.tar with the wheel, its wheels, the jars
	@rm -rf build/bundle && mkdir -p build/bundle/wheels build/bundle/jars
	@$(BIN)/python .ci/bundle.py > build/bundle/requirements.lock
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --require-hashes -r build/bundle/requirements.lock -w build/bundle/wheels
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation . -w build/bundle/wheels
	@cp .cache/jars/*.jar build/bundle/jars
	@cp .ci/install.sh collect-dumps.sh build/bundle && cp -r examples jobs build/bundle
	@tar -C build/bundle -cf build/eo-audit-bundle.tar . && ls -sh build/eo-audit-bundle.tar
	@echo "There: tar -xf eo-audit-bundle.tar && sh install.sh /opt/eo-audit (Python of the same version and Java 17 are needed, no network)"

tables: $(PACKAGES) ## write docs/tables.md anew from schemas/, and the fields in docs/dialects.md from eo_audit/dump/lines/grammar.py
	@$(BIN)/python .ci/tables.py > docs/tables.md
	@$(BIN)/python .ci/dialects.py

rules: $(JARS) ## write docs/rules/ anew: a page for each rule, from its text and its cases (minutes: it audits all cases)
	@$(BIN)/python .ci/rule_pages.py

lint: $(PACKAGES) ## ruff, strict mypy, shellcheck
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/shellcheck collect-dumps.sh

lock: $(PACKAGES) ## write requirements.lock anew: pins and hashes, no addresses
	@$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --extra dev --generate-hashes \
	  --no-annotate --no-header --no-emit-index-url --upgrade --quiet -o requirements.lock

clean: ## remove what runs and tests leave behind (not .venv, not the jars)
	@rm -rf out build .pytest_cache .mypy_cache .ruff_cache spark-warehouse metastore_db derby.log

# Java first: nobody wants to wait for the packages to hear that it is missing.
java:
	@java=java; if [ -n "$$JAVA_HOME" ]; then java="$$JAVA_HOME/bin/java"; fi; \
	found=$$("$$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1); \
	if [ "$${found:-0}" -lt 17 ] || [ "$$found" -gt 22 ]; then \
	  echo "eo-audit needs Java 17 to 22 (Spark runs on it), and '$$java' is $${found:+Java }$${found:-not there}: install a JDK 17, or point JAVA_HOME at one." >&2; exit 1; \
	fi

# uv installs three times faster than pip; where it cannot reach the packages (a mirror that only pip knows), pip does it. Its cache lies
# beside what it installs, so that files are linked and not copied, and goes: kept in the home it grew by 1.9 GB for each Spark built.
ifneq ($(filter-out quick lint lock fuzz tables,$(MAKECMDGOALS)),)
$(PACKAGES): | java
endif
$(PACKAGES): requirements.lock pyproject.toml
	@python=$$(for p in $(PYTHON) python3.11 python3.12 python3 python; do \
	  if "$$p" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' 2>/dev/null; then echo "$$p"; break; fi; done); \
	if [ -z "$$python" ]; then \
	  echo "eo-audit needs Python 3.11 or 3.12 with its venv module: install it, or name it with 'make PYTHON=/path/to/python3.11'." >&2; exit 1; \
	fi; \
	echo "Setting up .venv from requirements.lock (once, about a minute) ..."; \
	"$$python" -m venv .venv
	@awk '/^[a-z0-9]/ { uv = /^uv==/ } uv' requirements.lock > .venv/uv.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.lock
	@UV_CACHE_DIR=.venv/uv-cache $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.lock \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@rm -rf .venv/uv-cache
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(JARS): eo_audit/store/jars.py | $(PACKAGES)
	@$(BIN)/eo-audit setup > /dev/null
	@touch $@

# After the demo, not before it: nobody waits for this to see the first result.
$(CLASSES): $(JARS) conf/local.yaml
	@echo "Keeping the classes that Java loads, for faster starts (once, half a minute) ..."
	@$(BIN)/python -m eo_audit.store.session archive examples/hanging-transaction/dumps > /dev/null
	@touch $@
