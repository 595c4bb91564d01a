"""ESIMD kernels without a GPU: built for this CPU as they stand, run under several orders of work-groups, and watched.

The operator is the same twice: in one namespace right, in the other with the new residual stored in place, while other
groups still read the old one. `first_light.py` ends with this.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent

Step = Callable[[str], None]
Run = Callable[..., int]


def act(step: Step, run: Run, scratch: Path) -> None:
    """Shows both operators; insists that the one is clean and the other is found."""
    build = scratch / "esimd"
    races = ("-m", "esimd_ops", "races", "--schedules", "descending;ascending;random;together;late 64")

    step("8. Kernels of another kind: ESIMD, for GPUs only. Built for this CPU as they stand: esimd_ops host-build")
    run("-m", "esimd_ops", "host-build", "--checks", HERE / "esimd", "-o", build, expect=0)

    step("9. The one is right, in whatever order its work-groups run")
    run(*races, "--namespace", "esimd_right", site=build, expect=0)

    step("10. The other stores its residual in place, and two source lines race: red is what is expected here")
    run(*races, "--namespace", "esimd_race", site=build, expect=1)
