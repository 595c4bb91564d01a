"""Looking at a comparison before its end, without raising the chance of a false difference. Pure.

Group sequential test with the alpha-spending function of O'Brien-Fleming shape (Lan and DeMets, Biometrika 70, 1983):
on each side, after a share t of the data, `2 - 2 Φ(z / √t)` is spent, where z is the value that a quarter of alpha
lies beyond. The boundary of each look follows by recursive integration (Armitage, McPherson and Rowe, JRSS A 132,
1969) over the looks before.
"""

from __future__ import annotations

import math
from functools import lru_cache

from .stats import NORMAL

STEP = 0.02  # of the grid, in standard deviations of the whole


@lru_cache(maxsize=32)
def levels(alpha: float, looks: int) -> tuple[float, ...]:
    """The two-sided p-value below which each of `looks` equally spaced looks may call a difference."""
    import numpy as np

    if not 0 < alpha < 1 or looks < 1:
        raise ValueError(f"expected alpha between 0 and 1 and at least one look, found {alpha:g} and {looks}")
    z = NORMAL.inv_cdf(1 - alpha / 4)
    spent = [0.0] + [4 - 4 * NORMAL.cdf(z / math.sqrt((i + 1) / looks)) for i in range(looks)]
    half, width = math.sqrt(1 / looks), 8.0
    grid = np.arange(-width, width + STEP / 2, STEP)  # of the score, whose variance is t
    density = np.exp(-(grid**2) / (2 * half**2)) / (half * math.sqrt(2 * math.pi))
    step = np.exp(-((grid[:, None] - grid[None, :]) ** 2) / (2 * half**2)) / (half * math.sqrt(2 * math.pi)) * STEP
    found = []
    for i in range(looks):
        right, positive = density[grid >= -1e-9][::-1], grid[grid >= -1e-9][::-1]
        tail = np.concatenate(([0.0], np.cumsum((right[1:] + right[:-1]) / 2))) * STEP  # beyond each point, by trapezia
        edge = float(np.interp(spent[i + 1] - spent[i], 2 * tail, positive))
        found.append(math.erfc(edge / math.sqrt((i + 1) / looks) / math.sqrt(2)))
        density = step @ (density * np.clip((edge - np.abs(grid)) / STEP + 0.5, 0, 1))
    return tuple(found)
