"""A real engine with a spawned worker process, whose model calls guarded operators: what it says, and what is guarded.

    python engine.py MODEL eager|compiled

Prints one line of JSON, the last on stdout.
"""

import json
import os
import sys
from typing import Any


def asked(_worker: Any) -> dict[str, object]:
    """Runs in the worker."""
    import multiprocessing

    import vllm.envs

    told = {"pid": os.getpid(), "spawned": multiprocessing.get_start_method(allow_none=True) == "spawn"}
    if "esimd_ops" not in sys.modules:
        return told
    from esimd_ops import guard

    factor = vllm.envs.compile_factors().get("VLLM_SCHEMA_PATCH_DIGEST")
    guarded = [decision.op for decision in guard.status().guarded]
    return {**told, "guarded": guarded, "digest": guard.digest(), "factor": factor}


if __name__ == "__main__":
    from vllm import LLM, SamplingParams

    # fp32, so that no rounding of a fused kernel chooses another token.
    engine = LLM(model=sys.argv[1], max_model_len=128, dtype="float32", enforce_eager=sys.argv[2] == "eager")
    (worker,) = engine.collective_rpc(asked)
    greedy = SamplingParams(temperature=0.0, max_tokens=24, ignore_eos=True)
    answers = engine.generate(["def main():", "The norm of a row", "0 1 2 3"], greedy, use_tqdm=False)
    said = [list(answer.outputs[0].token_ids) for answer in answers]
    print(json.dumps({"pid": os.getpid(), "worker": worker, "said": said}))
