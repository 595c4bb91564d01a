"""A real engine with its worker process: `python engine.py MODEL`. Asks the worker what is guarded there.

Prints one line of JSON, the last on stdout.
"""

import json
import os
import sys
from typing import Any


def asked(_worker: Any) -> dict[str, object]:
    """Runs in the worker."""
    import vllm.envs

    from esimd_ops import guard

    # An engine without compilation has no need of the key, and none of these operators is ever called: it is asked here.
    factor = vllm.envs.compile_factors().get("VLLM_SCHEMA_PATCH_DIGEST")
    guarded = [decision.op for decision in guard.status().guarded]
    return {"pid": os.getpid(), "guarded": guarded, "digest": guard.digest(), "factor": factor}


if __name__ == "__main__":
    from vllm import LLM

    engine = LLM(model=sys.argv[1], max_model_len=128, dtype="bfloat16", enforce_eager=True)
    (worker,) = engine.collective_rpc(asked)
    print(json.dumps({"pid": os.getpid(), "worker": worker}))
