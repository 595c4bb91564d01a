"""ESIMD kernels on a CPU: stand-in headers, a runtime that schedules work-groups, what builds and watches a tree.

`include/` holds the headers, `runtime/` what they call. `build` makes shared libraries of a tree, `watch` speaks to the
runtime of one, `schedules` names orders of work, `trial` runs an operator under them, `races` makes a report of it.

The kinds of finding:

    HR101  work-groups of one launch race in global memory
    HR102  work-items of one group race in global memory
    HR103  work-items of one group race in shared local memory
    HR104  an access outside the tensor, or outside every tensor
    HR105  an access outside the group's shared local memory
    HR106  memory was read that nobody had written
    HR107  a value was stored that came from a register or memory that nobody had written
    HR108  a barrier that not all work-items of a group reach, or not the same one
    HR109  an argument was written that the operator must only read
    HR110  a 2D block access that the hardware does not define
    HR111  a result is wrong under some schedule
    HR112  the process was ended by a signal, or gave no answer in time
"""
