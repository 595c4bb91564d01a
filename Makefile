# The commands a person types.
#   make run                  the first minute: a library that is silently wrong, made safe in three ways
#   make run SOURCE=DIR       what is wrong in a tree of your own, and what to do; it is only read. Of SYCL: a wheel for bmg
#   make test                 the tests that CI runs
#   make test-long            the tests that take a minute or more each
#   make ocloc                    fetch Intel's offline compiler, where there is none that knows Battlemage
#   make bmg SOURCE=DIR           a SYCL tree (this one unless named) to a verified wheel for Battlemage, without oneAPI
#   make bmg-run                  what `make bmg` has built, run on the CPU device: results, and launches as the host's build has them
#   make driver-e2e SUITE=DIR     how many of intel/llvm's end-to-end tests the compiler driver gets right; takes hours
#   make driver-trees TREE=DIR    each source of another tree by the compiler driver, by its own build's options; takes hours
#   make bench                ratios against what a user would use instead; takes minutes
#   make audit-corpus CORPUS=DIR  how right `audit` is on checkouts of other libraries
#   make upstream-bugs LLM_SCALER=CLONE XPU_KERNELS=CLONE   the commits before and after its fixes; builds twenty trees
#   make esimd-e2e E2E=DIR    Intel's end-to-end tests of ESIMD on the host's headers; takes the better part of an hour
#   make test-registrations  what is read of 400 libraries of our own, against torch's registry; takes an hour
#   make test-installed WHEELS=   the patient by two compilers at four levels, and published wheels, changed in place
#   make fuzz                 the binary reader, for an hour or SECONDS=; JOBS= processes, without coverage
#   make test-torch TORCH=2.11.0   guard, probe and compile caches on another torch, in an environment of its own
#   make soak-simulation      intervals and tests under bursts, 4,000 times each; takes minutes, and no torch
#   make test-pythons         the kit without torch under Python 3.10 to 3.13, each in a clean environment
#   make test-vllm            the soak, the plugin and observing in a real vLLM on this CPU; fetches it once
#   make test-triton          operators whose kernels are Triton's, observed; Triton's interpreter runs them on a CPU
#   make test-wheels          the native wheel: built twice, tried in a fresh environment; takes minutes
#   make severe               `check` with every kind of check for every sample of every operator; takes minutes
#   make mutants              wrong references put to the judge of `check`, all operators; takes minutes
#   make lint                 style, types, import contracts

PYTHON ?= python3
# A version, or words for pip: TORCH="torch==2.13.0 --index-url URL"
TORCH ?= 2.13.0
RETURNS ?=
# Processes that share the tests; they often wait for children. Each takes some GB.
WORKERS ?= $(shell cores=$$(nproc); echo $$((cores < 7 ? cores + 1 : 8)))
SOURCE ?=

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
LOG := build/install.txt
STEP := @$(PYTHON) examples/step.py $(LOG)
TORCH_WORDS := $(if $(findstring torch,$(TORCH)),$(TORCH),torch==$(TORCH))
SOURCES := setup.py pyproject.toml esimd_soak/pyproject.toml $(shell find csrc -type f)

VLLM_VENV ?= $(HOME)/.cache/schema-kit-vllm

.PHONY: ocloc bmg bmg-run driver-e2e driver-trees run test test-long test-registrations test-installed soak-simulation test-torch test-pythons test-vllm test-triton \
  test-wheels bench fuzz mutants severe lint \
  clean audit-corpus upstream-bugs esimd-e2e

run: $(VENV)/.kit
	@$(PY) examples/first_light.py $(if $(RETURNS),--returns $(RETURNS)) $(SOURCE)

test: $(VENV)/.test
	$(PY) -m pytest -m "not long" -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 30
	$(MAKE) lint

test-long: $(VENV)/.test
	$(PY) -m pytest -m long -n $(WORKERS)

soak-simulation:
	$(PYTHON) -m venv .venv-soak
	.venv-soak/bin/pip install --quiet ./esimd_soak
	.venv-soak/bin/python tests/soak/bursts.py 4000

test-vllm: $(VENV)/.test
	TORCH="$(TORCH)" $(PY) tests/soak/vllm_real.py $(VLLM_VENV)
	TORCH="$(TORCH)" $(PY) tests/guard/vllm_plugin_real.py $(VLLM_VENV)
	TORCH="$(TORCH)" $(PY) tests/observe/vllm_real.py $(VLLM_VENV)

test-triton: $(VENV)/.test
	$(PIP) install --quiet --no-deps --target build/triton triton
	TRITON_INTERPRET=1 PYTHONPATH=build/triton $(PY) -m pytest tests/observe/triton_real.py

test-registrations: $(VENV)/.test
	$(PY) tests/registrations/libraries.py --jobs $(WORKERS) build/registrations
	$(PY) tests/binary/ways.py --jobs $(WORKERS) build/ways
	$(PY) tests/binary/pairs.py --jobs $(WORKERS) build/pairs
	$(PY) -m pytest tests/real/torch_itself.py --timeout 7200 # reads all of libtorch_cpu.so, against torch's registry

test-installed: $(VENV)/.test
	$(PY) tests/binary/patients.py build/patients
	$(if $(WHEELS),$(PY) tests/binary/published.py $(WHEELS))

test-wheels: $(VENV)/.test
	TORCH="$(TORCH_WORDS)" $(PY) -m pytest tests/rebuild/wheels.py

# Pure Python: what these tests need of torch is its compiler, not our kernels.
test-torch:
	test "$(TORCH)" != 2.13.0 || (echo "say which: make test-torch TORCH=2.11.0" && exit 2)
	$(PYTHON) -m venv .venv-torch-$(TORCH)
	.venv-torch-$(TORCH)/bin/pip install --quiet --upgrade pip
	.venv-torch-$(TORCH)/bin/pip install --quiet $(TORCH_WORDS) numpy hypothesis "setuptools>=77" wheel pytest pytest-timeout
	ESIMD_OPS_BUILD=none .venv-torch-$(TORCH)/bin/pip install --quiet --no-build-isolation .
	.venv-torch-$(TORCH)/bin/python -m pytest tests/guard tests/probe

test-pythons:
	$(PYTHON) tests/pythons.py $(PYTHONS)

ocloc: $(VENV)/.kit
	$(PY) -m schema_patch.build.driver.fetch

# A tree of your own is patched too; the kit's is right, and built from a copy: the host's build stays as it is.
bmg: $(if $(SOURCE),$(VENV)/.kit,$(VENV)/.test)
	rm -rf build/bmg build/bmg-tree && mkdir -p build/bmg-tree
ifdef SOURCE
	$(PY) -m schema_patch rebuild $(SOURCE) --for bmg --out build/bmg
else
	cp -r setup.py pyproject.toml README.md LICENSE MANIFEST.in csrc schema_patch esimd_ops esimd_soak build/bmg-tree
	$(PY) -m schema_patch.build.driver.home build/compiler
	. build/compiler/environment && TORCH_XPU_ARCH_LIST=bmg \
	  $(PIP) wheel --quiet --no-build-isolation --no-deps --wheel-dir build/bmg ./build/bmg-tree
endif
	$(VENV)/bin/verify-schemas build/bmg/*.whl --target bmg-g21
ifndef SOURCE
	$(PY) -m pytest tests/kernels/own.py
endif

# The kit's own library for the card, run here on the CPU device: `make bmg` first.
bmg-run: $(VENV)/.test
	$(PY) -m pytest tests/native/own.py

driver-e2e: $(VENV)/.test
	$(PY) benchmarks/driver_e2e.py $(or $(SUITE),$(error SUITE=DIR: sycl/test-e2e of a checkout of intel/llvm)) --out build/e2e.jsonl

driver-trees: $(VENV)/.test
	$(PY) benchmarks/driver_trees.py $(or $(TREE),$(error TREE=DIR: a checkout of vllm-xpu-kernels or sgl-kernel-xpu)) --out build/$(notdir $(TREE)).jsonl

bench: $(VENV)/.test
	$(PY) benchmarks/ops.py
	$(PY) benchmarks/startup.py
	$(PY) benchmarks/guard.py
	$(PY) benchmarks/observe.py $(if $(wildcard $(VLLM_VENV)/model),--vllm $(VLLM_VENV))
	$(PY) benchmarks/verify.py
	$(PY) benchmarks/host.py
	$(PY) tests/soak/bench_soak.py

upstream-bugs: $(VENV)/.test
	$(PY) benchmarks/upstream_bugs.py $(if $(LLM_SCALER),llm-scaler=$(LLM_SCALER)) $(if $(XPU_KERNELS),vllm-xpu-kernels=$(XPU_KERNELS))

audit-corpus: $(VENV)/.test
	$(PY) benchmarks/audit_corpus.py $(or $(CORPUS),$(error CORPUS=DIR: a checkout, or a folder of them))

esimd-e2e:
	$(PYTHON) benchmarks/esimd_e2e.py $(or $(E2E),$(error E2E=DIR: SYCL/ESIMD of intel/llvm-test-suite, or sycl/test-e2e/ESIMD of intel/llvm))

fuzz: $(VENV)/.test
	$(PIP) install --quiet --editable '.[fuzz]' --no-build-isolation
	$(PY) fuzz/reader.py --seconds $(or $(SECONDS),3600) $(if $(JOBS),--jobs $(JOBS)) $(if $(SEEDS),--seeds $(SEEDS))

mutants: $(VENV)/.test
	$(PY) tests/ops/mutants.py

severe: $(VENV)/.kit
	$(PY) -m esimd_ops check --severe

lint: $(VENV)/.test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

clean:
	rm -rf $(VENV) .venv-torch-* .venv-soak build dist *.egg-info esimd_soak/*.egg-info esimd_ops/*.so schema_patch/built.json

# torch first and alone, so that no other requirement chooses its build. --no-compile: most of it is never imported.
$(VENV)/.torch:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13) and "Python 3.10 to 3.13 is needed")'
	@echo "Installing into $(VENV); all that pip and compilers say: $(LOG)"
	$(STEP) "an environment" $(PYTHON) -m venv $(VENV)
	$(STEP) "$(TORCH_WORDS)" $(PIP) install --no-compile $(TORCH_WORDS)
	$(STEP) "the SYCL runtime" $(PIP) install --no-compile \
	  "intel-sycl-rt==2025.3.*" "intel-opencl-rt==2025.3.*" "setuptools>=77" wheel ninja numpy
	@touch $@

$(VENV)/.kit: $(VENV)/.torch $(SOURCES)
	$(STEP) "the kit, its extension compiled" $(PIP) install --no-build-isolation --editable . --editable './esimd_soak[parquet]'
	@touch $@

$(VENV)/.test: $(VENV)/.kit
	$(STEP) "the test tools" $(PIP) install --no-build-isolation --editable '.[test]'
	@touch $@
