"""When requests are due: Plan -> moments. Pure; the same seed gives the same moments.

Closed loop: a slot that is free sends at once. Open loop (`rate`): requests arrive whether or not earlier ones have
ended, as those of real users do, by a Poisson process or at equal distances. A ramp lets either grow to its height.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from esimd_soak.plan import Plan, Server


def moments(plan: Plan, server: Server, skipped: int = 0) -> Iterator[float]:
    """Seconds after the beginning, for ever. With a ramp the rate grows evenly from nothing to the plan's."""
    source = random.Random(f"{plan.prompt_seed}:{skipped}:{server.name}:arrivals")
    expected = 0.0  # arrivals expected up to now: a Poisson process of rate 1 in this time
    while True:
        expected += source.expovariate(1.0) if plan.arrivals == "poisson" else 1.0
        in_ramp = plan.rate * plan.ramp / 2
        if expected < in_ramp:
            yield math.sqrt(2 * plan.ramp * expected / plan.rate)
        else:
            yield plan.ramp + (expected - in_ramp) / plan.rate


def slot_start(plan: Plan, slot: int) -> float:
    """Seconds after the beginning at which slot number `slot` of a closed loop begins to send."""
    return plan.ramp * slot / plan.concurrency
