"""The operators as typed Python functions, one module a family. Load the extension first: `esimd_ops.native.load()`.

Every function writes into buffers that its caller made, as its docstring says, and returns the buffer that the original
library returns (or nothing, where that returns nothing), although the operators themselves return nothing: that is what
torch.compile can trace. All tensors are dense and on one device unless said otherwise, and outputs share no memory with
other arguments. What an operator cannot do right it refuses: RuntimeError, with the operator, the argument, what was
expected and what was found.

`inverse_rms(x)` is `1 / sqrt(mean(x^2) + eps)` over the last dimension. Sums are made in fp32 and rounded once.
Formulas: docs/operators.md, by name.
"""

from .gdn import *  # noqa: F403
from .gemm import *  # noqa: F403
from .gemv import *  # noqa: F403
from .moe import *  # noqa: F403
from .norm import *  # noqa: F403
from .norm_gemv import *  # noqa: F403
from .quant import *  # noqa: F403
from .rope import *  # noqa: F403
