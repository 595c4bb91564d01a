"""Which arguments does this C++ implementation write, and what does its return alias? Static inference with evidence.

Rooms, each knowing only those before it: `mask` (comments, literals, conditionals), `scan` (what a file defines),
`macros` (expansion), `values` (origins and summaries), `models` (functions outside the tree), `index` (the definitions
of a tree), `syntax` (one function as syntax nodes), `flow` (values through a function), `infer` (operators).
"""
