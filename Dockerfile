# The origin case: Intel's custom-esimd-kernels-vllm, patched, built for Arc B-series and verified inside the image.
#
#   docker build --build-context ops=llm-scaler/vllm/custom-esimd-kernels-vllm --build-arg BASE=intel/llm-scaler-vllm:TAG .
#
# Not built where it was written: that takes a Docker engine and the oneAPI packages.
ARG BASE=intel/llm-scaler-vllm:0.21.0-b3.1

FROM ${BASE} AS builder
ARG RETURNS=alias
# 2026.x links libsycl.so.9, which torch of these images does not load.
ARG ONEAPI=2025.3
# Torch's own list names mtl-h, at which ocloc crashes.
ENV TORCH_XPU_ARCH_LIST=bmg
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
RUN apt-get update \
    && apt-get install -y --no-install-recommends "intel-oneapi-compiler-dpcpp-cpp-${ONEAPI}" \
    && rm -rf /var/lib/apt/lists/*
COPY . /kit
RUN ESIMD_OPS_BUILD=none pip install --no-cache-dir /kit
COPY --from=ops . /ops
RUN python -m schema_patch apply --returns "${RETURNS}" /ops
RUN source /opt/intel/oneapi/setvars.sh --force \
    && icpx --version | grep -F "${ONEAPI}" \
    && pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels /ops
# The build fails here unless the binaries say what the operators do.
RUN verify-schemas /wheels --require esimd_gemv_int4 --require esimd_gemm_int4_pgrp

FROM ${BASE}
COPY --from=builder /wheels /wheels
RUN pip install --no-cache-dir --no-deps --force-reinstall /wheels/*.whl && rm -rf /wheels
# A graph compiled before the fix would be served after it.
RUN rm -rf ~/.cache/vllm/torch_compile_cache /tmp/torchinductor_*
