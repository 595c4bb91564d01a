"""Operators for quantised language models: native kernels, their plain PyTorch meaning, and proof that they agree.

Importing the package loads neither torch nor the extension; `esimd_ops.native.load()` does.
"""

from schema_patch import __version__

__all__ = ["__version__"]
