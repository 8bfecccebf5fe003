# Two commands do everything on a fresh machine: `make train` and `make test`.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# One thread by default: two threads on a busy two-core machine slow each other down.
export OMP_NUM_THREADS ?= 1
export MPLBACKEND := Agg

.PHONY: train test check bench clean soak

train: $(VENV)/.installed
	$(BIN)/python -m scenarios.east_west_train $(ARGS)

test: $(VENV)/.installed-test
	$(MAKE) --no-print-directory check

# The same checks without touching the installation.
check:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest --numprocesses auto --dist loadfile

bench: $(VENV)/.installed-test
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: setup.cfg pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,ray]'
	@touch $@

# Property tests on new random examples, hours of them: SEED repeats a run, EXAMPLES sets its size
# (40000: 400 times that of `make test`), ARGS picks files.
soak: $(VENV)/.installed-test
	@seed=$${SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; \
	echo "soak: seed $$seed, the same examples again with: make soak SEED=$$seed"; \
	$(BIN)/pytest -m "hypothesis or soak" --hypothesis-profile=soak --hypothesis-seed=$$seed \
		--numprocesses auto --dist worksteal $(ARGS)
