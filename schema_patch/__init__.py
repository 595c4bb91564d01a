"""Find, fix and prove the mutation schemas of PyTorch operator libraries.

Knows schema text, C++ source as bytes, ELF files and policy. Knows neither torch nor what an operator computes.
"""

__version__ = "0.2.0"
