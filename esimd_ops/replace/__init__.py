"""Puts this kit's operators in the place of another library's, in the running process, at the dispatcher.

    from esimd_ops import guard
    guard.enable(replace="races")             # the operators of policies/races.toml, which read what they write
    print(guard.status())                     # calls replaced, and passed on

Call sites, schemas and graphs do not change: eager and compiled calls, a guard's twin too, reach the operator through
the dispatcher, where a kernel of ours (`csrc/replacement.cpp`) is asked first. It reads every old value before it
writes any. Arguments that it refuses go to the original, counted. `what` says which operators are meant.
"""

from .api import Replaced, disable, enable, names, status
from .what import ReplaceError

__all__ = ["ReplaceError", "Replaced", "disable", "enable", "names", "status"]
