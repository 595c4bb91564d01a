# syntax=docker/dockerfile:1
# The origin case: Intel's custom-esimd-kernels-vllm, patched, built for Arc B-series by the compiler of its own image's
# builder, and verified as it is installed.
#
#   docker build .                                                          another release: --build-arg LLM_SCALER=…
#   docker build --build-context ops=llm-scaler/vllm/custom-esimd-kernels-vllm .         a tree of your own
#
# Not built where it was written, which has no Docker engine: its steps are run by tests/rebuild/test_dockerfile.py.
ARG LLM_SCALER=0.21.0-b2
ARG BASE=intel/llm-scaler-vllm:${LLM_SCALER}
# oneAPI 2025.3, which links libsycl.so.8, as torch of these images does; 2026.x links libsycl.so.9.
ARG TOOLCHAIN=intel/omix:0.1.0-devel-ubuntu24.04

FROM ${TOOLCHAIN} AS toolchain

FROM scratch AS ops
ARG LLM_SCALER
ADD https://github.com/intel/llm-scaler.git#vllm-${LLM_SCALER}:vllm/custom-esimd-kernels-vllm /

# Built in the image that will run it: against the torch that is there. Nothing of this stage but /out is shipped.
FROM ${BASE} AS builder
ARG ARCH=bmg
ARG RETURNS=alias
# Of the patch of the release above, returning aliases. Another tree or style has another: the step below tells it.
ARG PATCH_SHA256=111b26273cb23b0ac62b5acb2c68a30bd9f6a80f286fa57f9fcc4425b621aab2
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ python3-dev \
    && rm -rf /var/lib/apt/lists/*
COPY --from=toolchain /opt/intel/oneapi /opt/intel/oneapi
# Not setvars.sh, which would put a second SYCL runtime before torch's own.
ENV PATH=/opt/intel/oneapi/compiler/2025.3/bin:${PATH} TORCH_XPU_ARCH_LIST=${ARCH}
COPY . /kit
RUN ESIMD_OPS_BUILD=none python3 -m pip wheel --no-cache-dir --no-deps --wheel-dir /out/kit /kit
# hadolint ignore=DL3013
RUN python3 -m pip install --no-cache-dir /out/kit/*.whl ninja 'setuptools>=77' wheel \
    && schema-patch doctor --for xpu
COPY --from=ops / /ops
RUN schema-patch rebuild /ops --for xpu --returns "${RETURNS}" --arch "${ARCH}" --out /out \
    && found=$(python3 -c 'import json; print(json.load(open("/out/build.json"))["patch"]["sha256"])') \
    && if [ "${found}" != "${PATCH_SHA256}" ]; then \
         echo "expected a patch with PATCH_SHA256=${PATCH_SHA256}, found ${found}: read the patch below, then pass" \
           "--build-arg PATCH_SHA256=${found}" >&2; \
         cat /out/patch.diff >&2; \
         exit 1; \
       fi

FROM ${BASE}
ARG LLM_SCALER
ARG ARCH=bmg
ARG RETURNS=alias
ARG PATCH_SHA256=111b26273cb23b0ac62b5acb2c68a30bd9f6a80f286fa57f9fcc4425b621aab2
LABEL schema-kit.llm-scaler="${LLM_SCALER}" \
      schema-kit.arch="${ARCH}" \
      schema-kit.returns="${RETURNS}" \
      schema-kit.patch.sha256="${PATCH_SHA256}" \
      schema-kit.record="/opt/schema-kit/build.json"
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
COPY --from=builder /out /opt/schema-kit
# The kit itself comes with its vLLM plugin, which guards every worker.
RUN python3 -m pip install --no-cache-dir /opt/schema-kit/kit/*.whl \
    && python3 -m pip install --no-cache-dir --no-deps --force-reinstall /opt/schema-kit/*.whl
# The build fails here unless the installed binaries say what the 37 operators write that did not say so, and torch, which
# loads them in a child process, registers just that (--load).
RUN verify-schemas "$(python3 -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/custom_esimd_kernels_vllm" \
      --target "${ARCH}" --load \
      --require esimd_gemv_int4,esimd_gemm_int4_pgrp \
      --require esimd_gemv_int4_fused2,esimd_gemv_fp16,esimd_gemv_fp16_gelu_mul \
      --require esimd_gemv_fp8_pern,esimd_gemv_fp8_pern_fused2,esimd_gemv_fp8_pern_fused3 \
      --require esimd_gemv_fp8_pert,esimd_gemv_fp8_pert_bmg,esimd_gemv_fp8_pert_fused2,esimd_gemv_fp8_pert_fused3 \
      --require esimd_gemm_fp8_pert,esimd_gemm_fp8_blockscale \
      --require esimd_rms_norm,esimd_rms_norm_gated,esimd_norm_add_norm,esimd_accum_norm_add_norm \
      --require esimd_fused_add_rms_norm,esimd_fused_add_rms_norm_batched,esimd_fused_scaled_add_rms_norm \
      --require esimd_norm_gemv_fp8_pert,esimd_norm_gemv_int4_pert,esimd_norm_gemv_norm_fp16 \
      --require esimd_resadd_norm_gemv_fp8_pert,esimd_resadd_norm_gemv2_fp8_pert,esimd_resadd_norm_gemv_int4_pert \
      --require esimd_scaled_resadd_norm_gemv_fp8_pert \
      --require esimd_moe_topk,topk_v2,esimd_moe_scatter,esimd_moe_scatter_fused,esimd_moe_gather \
      --require esimd_moe_silu_mul,esimd_moe_gelu_tanh_mul,esimd_moe_gemm_fp8,esimd_moe_gemm_fp8_pert
# A graph compiled before the fix would be served after it.
RUN rm -rf ~/.cache/vllm/torch_compile_cache ~/.triton/cache /tmp/torchinductor_*
