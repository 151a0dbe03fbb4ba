# Sluice. Every target first brings .venv up to date (at once when nothing changed). GNU make 3.81 is enough.

SHELL := /bin/sh
RUN := .venv/bin

# Images of Python often ask for no bytecode; then each of the many processes of a run compiles the engine anew.
unexport PYTHONDONTWRITEBYTECODE

# The first Python that can make virtual environments: 3.11 to 3.13 are tested, a newer one is tried last.
FIND_PYTHON = for python in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.14 python; do \
	  if "$$python" -I -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; then break; fi; \
	  python=; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "Sluice needs Python 3.11 or newer and found none on the PATH; install one, or: make PYTHON=/path/to/python3.11" >&2; exit 3; \
	fi

.DEFAULT_GOAL := help
.PHONY: help setup lab test test-whole test-compiled fast demo cluster bench bench-checks bench-peers bench-spark bench-cluster bench-widgets bench-tab bench-cold profile site differential race fuzz chaos session dist hub lint clean requirements

help: ## show this list
	@echo "make lab            open the course in JupyterLab         (ARGS='--no-browser --port 8890')"
	@echo "make demo           flights from Spark through the engine  (ARGS='--records 5000 --json')"
	@echo "make fast           compile the engine for demo, run, bench (ARGS='--compiler zig')"
	@echo "make cluster        a Spark cluster on this machine        (ARGS=stop ends it, ARGS=status)"
	@echo "make test           everything that must hold, some 45 min   (ARGS='-k spanning' to pick tests)"
	@echo "make test-whole     all of what is a sample in make test   (ARGS='-k sizes')"
	@echo "make test-compiled  the engine's tests on the compiled one  (ARGS='-k spanning')"
	@echo "make bench          40 goals as ratios to peers, 15 min    (ONLY=11,14 for two of them, ARGS='--help')"
	@echo "make bench-checks   how long a learner waits for a check   (ARGS='--rounds 5')"
	@echo "make bench-spark    every way out of Spark, in rows/s      (ARGS='--rows 5000000')"
	@echo "make bench-cluster  100 M rows through Spark's executors  (ARGS='--rows 5000000 --rounds 5')"
	@echo "make bench-widgets  what a moving view costs, in a browser (ARGS='--seconds 10')"
	@echo "make bench-tab      whether a browser says what a terminal says (ARGS='3.1 --wrong 2')"
	@echo "make bench-cold     how long the site's first visitor waits  (ARGS='try --rounds 5')"
	@echo "make profile        where the time of a record goes        (ARGS=batch)"
	@echo "make site           the lessons as pages to read             (ARGS=FOLDER, else build/site; npm: try/, lite/)"
	@echo "make differential   random jobs on every driver, for a night  (ARGS='--jobs 5000 --seed 7')"
	@echo "make race           other ways to push back, 50 seeds, 2 hours (ARGS='-n 2')"
	@echo "make fuzz           a million hostile inputs, < 1 hour      (ARGS='--seconds 60')"
	@echo "make chaos          220 runs under faults, and a sweep      (ARGS='--seeds 20 --first 7')"
	@echo "make session        kills in a cluster, and 20 jobs in it    (ARGS='--rounds 3 --seconds 30')"
	@echo "make dist           a wheel to install elsewhere, in dist/      (ARGS='--out DIR')"
	@echo "make hub            JupyterHub into .venv, for its tests and to try the recipe"
	@echo "make lint           style and types only"
	@echo "make clean          remove .venv and caches; learners' work/ and .course/ stay"
	@echo "make requirements   pin the packages of pyproject.toml again"
	@echo
	@echo "Each target installs what it needs into .venv first, when something changed. Needed: make, Python 3.11 or newer."

setup:
	@$(FIND_PYTHON); "$$python" -I course/install.py

lab: setup
	@exec $(RUN)/sluice lab $(ARGS)

demo: setup
	@exec $(RUN)/sluice demo $(ARGS)

fast: setup
	@exec $(RUN)/sluice compile $(ARGS)

cluster: setup
	@exec $(RUN)/sluice cluster $(or $(ARGS),start)

bench: bench-peers
	@exec $(RUN)/python -m tests.bench $(if $(ONLY),--only '$(ONLY)') $(ARGS)

# Other packages that are compared with; one that has no wheel for this Python is left out, and its row says so.
bench-peers: setup
	@$(RUN)/python -m tests.bench.install

bench-spark: setup
	@exec $(RUN)/python -m tests.bench.spark_ways $(ARGS)

bench-checks: setup
	@exec $(RUN)/python -m tests.bench.checks $(ARGS)

bench-cluster: setup
	@exec $(RUN)/python -m tests.bench.spark_cluster $(ARGS)

site: setup
	@exec $(RUN)/python -m course.site $(ARGS)

bench-widgets: setup
	@exec $(RUN)/python -m tests.bench.widgets $(ARGS)

bench-tab: setup
	@exec $(RUN)/python -m tests.bench.in_a_tab $(ARGS)

bench-cold: setup
	@exec $(RUN)/python -m tests.bench.cold_tab $(ARGS)

profile: setup
	@exec $(RUN)/python -m tests.bench.profile $(ARGS)

differential: setup
	@exec $(RUN)/python -m tests.test_differential $(ARGS)

race: setup
	@exec $(RUN)/python -m pytest -q --whole --timeout 3600 -k every_race tests/refimpl/rivals/test_race.py $(ARGS)

fuzz: setup
	@exec $(RUN)/python -m tests.fuzz $(ARGS)

chaos: setup
	@exec $(RUN)/python -m tests.chaos $(ARGS)

session: setup
	@exec $(RUN)/python -m tests.session $(ARGS)

dist: setup
	@exec $(RUN)/python -m course.author.distribution $(ARGS)

# What is in .venv already has the same pins there.
hub: setup
	@cmp -s course/classroom/requirements.txt .venv/hub-ready || { \
	  $(RUN)/python -I -m pip install --quiet --no-input --no-deps --require-hashes -r course/classroom/requirements.txt \
	  && cp course/classroom/requirements.txt .venv/hub-ready; }

lint: setup
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

# Three at a time, or WORKERS of them: on two cores two would wait for children, browsers and clusters half of the time.
# The tests of one file stay together, since they share a server, a browser or a cluster. The longest files come first
# (tests/support/heaviest.py). nbval, which is slow to load, is for processes of their own; so are the grammars of
# internet addresses, which no test needs.
SHARED = -n $(or $(WORKERS),3) --dist loadfile --no-loadscope-reorder -p no:nbval -p course.cli.no_addresses
test: lint
	$(RUN)/python -m pytest $(SHARED) $(ARGS)

test-whole: setup
	$(RUN)/python -m pytest --whole -m 'sampled or hypothesis' $(SHARED) $(ARGS)

# The packages of which modules are compiled, what is written and read by them, and hostile bytes for them.
ON_BOTH := $(addprefix tests/refimpl/,memory records producer consumer exchange task) tests/conformance tests/shortcuts \
	$(addprefix tests/drivers/,test_same_result.py test_streams.py test_tls_stream.py) \
	tests/fuzz/test_fuzz.py tests/fuzz/test_regressions.py
test-compiled: setup
	$(RUN)/sluice compile
	SLUICE_ENGINE=compiled $(RUN)/python -m pytest -q $(SHARED) $(ON_BOTH) $(ARGS)

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist *.egg-info
	find course lessons refimpl tests widgets -name __pycache__ -type d -prune -exec rm -rf {} +

# uv resolves for all platforms and Pythons at once, which pip cannot; it is fetched into a folder of its own.
requirements: setup
	@$(RUN)/python -m venv .venv/uv && .venv/uv/bin/pip install --quiet "uv>=0.5"
	@{ echo "# Every package Sluice needs, tests included, pinned with hashes; Linux and macOS, Python 3.11 to 3.13."; \
	   echo "# Made from pyproject.toml by \`make requirements\`. Do not edit."; echo; \
	   echo "setuptools>=77" | .venv/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
	     --generate-hashes --no-emit-index-url --no-annotate --no-header --extra test --extra site pyproject.toml -; } > .venv/requirements.new
	@{ echo "# What only \`make bench\` needs, pinned with hashes; wheels only. Where there is none, its row says so."; \
	   echo "# Made from pyproject.toml by \`make requirements\`. Do not edit."; echo; \
	   $(RUN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['bench'], sep='\n')" \
	   | .venv/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
	     --generate-hashes --no-emit-index-url --no-annotate --no-header --constraint .venv/requirements.new -; \
	 } > .venv/requirements-bench.new
	@{ echo "# What a container has: the course and a JupyterHub, without tests, pinned with hashes."; \
	   echo "# Made from pyproject.toml by \`make requirements\`. Do not edit."; echo; \
	   echo "setuptools>=77" | .venv/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
	     --generate-hashes --no-emit-index-url --no-annotate --no-header --extra hub \
	     --constraint .venv/requirements.new pyproject.toml -; } > .venv/requirements-container.new
	@mv .venv/requirements.new requirements.txt
	@mv .venv/requirements-bench.new tests/bench/requirements.txt
	@mv .venv/requirements-container.new course/classroom/requirements.txt
	@echo "requirements.txt is new; the next make installs it."
