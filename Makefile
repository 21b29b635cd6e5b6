# make run [PORT=8420]   set up on first use, then serve and print a sign-in link
# make test              every check: lint, types, tests, browser tests
# make lint | format     ruff and mypy | apply ruff's formatting

PORT ?= 8420
PYTHON ?= python3.11 python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-input

# Checks and tests start the settings, which make a store: never the user's own.
define in_new_home
home=$$(mktemp -d) && trap 'rm -rf "$$home"' EXIT && export MEMEX_HOME="$$home" &&
endef

.PHONY: run test lint format unit-tests browser-tests
.DELETE_ON_ERROR:

run: $(VENV)/installed
	@$(BIN)/python manage.py migrate --verbosity 0
	@exec $(BIN)/python manage.py serve --port $(PORT)

# One after the other also under -j: two cores, and the first failure should be the last line.
test: $(VENV)/installed-tests
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory unit-tests
	@$(MAKE) --no-print-directory browser-tests

lint: $(VENV)/installed-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(in_new_home) $(BIN)/mypy manage.py memex_site records sessions_app

format: $(VENV)/installed-tests
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

unit-tests: $(VENV)/installed-tests
	$(in_new_home) $(BIN)/pytest -m "not e2e" -n auto --dist loadfile

# In a process of their own: the browser driver keeps an event loop running, which Django's ORM refuses.
browser-tests: $(VENV)/installed-tests
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	if [ -z "$${CI:-}$${INSTALL_CHROMIUM:-}" ]; then \
		echo "  (to have it installed with apt: make test INSTALL_CHROMIUM=1)"; \
	elif [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo "  (it can be installed automatically only as root, with apt-get)"; \
	else \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
		apt-get install -qq -y --no-install-recommends chromium >/dev/null; \
	fi || echo "  (apt-get failed)"
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then \
		$(in_new_home) $(BIN)/pytest -m e2e tests/e2e; \
	else \
		echo "########  BROWSER TESTS SKIPPED: no Chromium on this machine  ########"; \
	fi

$(VENV)/installed: requirements.txt | $(BIN)/python
	@echo "Installing what Memex needs into $(VENV) (about a minute, only when requirements.txt changed) …"
	@$(PIP) -r requirements.txt
	@touch $@

$(VENV)/installed-tests: tests/requirements.txt requirements.txt | $(BIN)/python
	@echo "Installing what the checks need into $(VENV) …"
	@$(PIP) -r tests/requirements.txt
	@touch $@ $(VENV)/installed

$(BIN)/python:
	@for python in $(PYTHON); do \
		"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null || continue; \
		if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
			echo "$$python lacks its venv module. On Debian or Ubuntu: apt install python3-venv" >&2; exit 1; \
		fi; \
		"$$python" -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }; exit 0; \
	done; \
	echo "Memex needs Python 3.11 to 3.13; looked for: $(PYTHON). Name another one: make PYTHON=/path/to/python" >&2; \
	exit 1
