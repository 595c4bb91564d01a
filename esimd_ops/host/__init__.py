"""ESIMD kernels on a CPU: stand-in headers, a runtime that schedules work-groups, and what builds a tree with them.

`include/` holds the headers, `runtime/` what they call. `build` makes shared libraries of a tree; `esimd_ops.races`
runs the operators in them.
"""
