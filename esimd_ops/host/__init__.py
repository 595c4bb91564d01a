"""ESIMD kernels on a CPU: stand-in headers, a runtime that schedules work-groups, what builds and watches a tree.

`include/` holds the headers, `runtime/` what they call. `build` makes shared libraries of a tree, `watch` speaks to the
runtime of one, `schedules` names orders of work, `trial` runs an operator under them, `races` makes a report of it.

The kinds of finding:
"""
