"""Does a build of the operators do what the table says? Of any namespace, on any device, in a process of its own.

The kinds of finding:

    PA101  a number is further from the fp64 truth than its tolerance
    PA102  bits differ where the contract is exact: copies, indices, elements that keep what they hold
    PA103  an argument was written that the schema does not declare
    PA104  an argument was written that the operator must only read
    PA105  elements of an output were left unwritten
    PA106  memory outside a tensor was written: before it, past its end, or between its rows
    PA107  the same inputs did not give the same bits again, under load
    PA108  a result that is declared new is a buffer that the operator keeps
    PA109  the result is not the buffer that the operator hands back
    PA110  the compiled program does not give what the eager one gives
    PA111  arguments that the contract allows were refused
    PA112  the process was ended by a signal, or gave no answer in time
    PA114  a result depends on an earlier call: on what lay at the same addresses
    PA113  the bits are not those of the recorded build

What a schema declares is judged by `schema_patch.schemas.rules`, under its codes.

`Request` says what to check, `supervise.check` runs it in a child process, `trial` is what happens there.
"""

from esimd_ops.trials.messages import Request

__all__ = ["Request"]
