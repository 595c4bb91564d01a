"""Makes operators whose schema does not tell the truth right under torch.compile, in the running process.

    from esimd_ops import guard
    print(guard.enable())                                   # every namespace of the operator tables
    guard.enable("mylib", writes={"op": ["out"]})           # any other library

For each such operator a *twin* is registered whose schema is true and that calls the operator; a functionalization
rule makes torch.compile trace the twin in the operator's place. Call sites do not change, eager calls do not change,
nothing is rebuilt. Needs torch 2.7 or newer. Files: `known` holds what is said of operators, `decide` says what is to
be done to one, `twins` and `rules` do it, `late` waits for operators that are not loaded yet, `never` tells which never
came, `infer` finds out what an unknown operator does, `cache_key` keeps compile caches apart, `debug` compares a
compiled program with the eager one.
"""

from .api import Guard, digest, disable, enable, enabled, inherit, status
from .decide import Action, Decision, GuardError
from .never import expect

__all__ = [
    "Action",
    "Decision",
    "Guard",
    "GuardError",
    "digest",
    "disable",
    "enable",
    "enabled",
    "expect",
    "inherit",
    "status",
]
