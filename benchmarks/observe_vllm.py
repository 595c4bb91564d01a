"""A decode loop of vLLM on this CPU, observed with budgets: `observe.py --vllm VENV` runs it in the environment VENV.

    python observe_vllm.py MODEL

A line of JSON for each run: budget, seconds, share of run time, calls watched and seen. The engine is in this process,
as eager as `--enforce-eager` makes a server: 8 times 8 sequences of 256 tokens, in a cache of 256 blocks.
"""

import json
import os
import sys
import time

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}

from vllm import LLM, SamplingParams

from esimd_ops.observe import observe

BUDGETS = (0.01, 0.05, None)
TIMES = 8  # some seconds: of one decoding 1 % is less than a watched call takes


def main(model: str) -> None:
    engine = LLM(model, dtype="bfloat16", max_model_len=1024, enforce_eager=True, num_gpu_blocks_override=256)
    asked = SamplingParams(max_tokens=256, ignore_eos=True, temperature=0.0)
    prompts = [f"a question, number {n}: " * (n + 1) for n in range(8)]

    def timed() -> float:
        start = time.perf_counter()
        for _ in range(TIMES):
            engine.generate(prompts, asked, use_tqdm=False)
        return time.perf_counter() - start

    timed()
    tell("not observed", timed())
    for budget in BUDGETS:
        with observe(budget=budget) as seen:
            took = timed()
        record = seen.record
        operators = record.operators.values()
        watched, calls = sum(op.watched for op in operators), sum(op.calls for op in operators)
        tell(f"{budget:.0%}" if budget else "none", took, record.spent_s / record.ran_s, watched, calls)
    tell("off again", timed())


def tell(*row: object) -> None:
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
