"""Six lines that are right in eager mode and, with the schemas as shipped, silently wrong under torch.compile.

Exit code 0: eager and compiled agree. 1: the compiled program is wrong. 2: torch.compile refuses the program.
"""

import os
import warnings

# A result cached before a fix would be served after it: the caches do not know the schema.
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

import custom_esimd_kernels_vllm  # noqa: F401  registers the operators
import torch

warnings.filterwarnings("ignore", message="dynamo_pgo force disabled")  # as asked for above
norm = torch.ops.custom_esimd_kernels_vllm.esimd_rms_norm


def program(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    output = torch.zeros_like(x)
    norm(x, output, weight, 1e-6)
    return output + 1


def main() -> int:
    torch.manual_seed(0)
    x, weight = torch.randn(1, 64).half(), torch.ones(64).half()
    print("schema   ", norm.default._schema)
    eager = program(x, weight)
    print("eager    ", [round(v, 3) for v in eager[0, :5].tolist()])
    try:
        compiled = torch.compile(program, fullgraph=True)(x, weight)
    except RuntimeError as error:
        why = " ".join(str(error).split()).partition("RuntimeError: ")[2] or str(error)
        print("compiled  refused:", why.partition(": ")[0])
        return 2
    print("compiled ", [round(v, 3) for v in compiled[0, :5].tolist()])
    right = torch.allclose(eager, compiled)
    print("the same  right" if right else "different wrong: the write into `output` was lost")
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
