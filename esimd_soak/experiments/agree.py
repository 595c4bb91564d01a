"""The same greedy prompts on two servers: how many answers agree, and where the others part.

A measurement, not a verdict: greedy text is not reproducible across instances (batching and kernels change the order of
sums, a near-tie flips one token, and all after it differ). So the same server is asked twice as a control.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from esimd_soak.judge import stats
from esimd_soak.load import client, protocol
from esimd_soak.load.prompts import Prompts
from esimd_soak.model import ToolError
from esimd_soak.plan import Plan, Server
from esimd_soak.score import score

WARNING = (
    "greedy text is not reproducible across instances of one model: in the origin case 9 of 20 prompts agreed at "
    "temperature "
    "0 between two healthy servers. A difference here proves nothing by itself; do not use it as an oracle"
)


@dataclass(frozen=True, slots=True)
class Agreement:
    """`differences`: of the prompts that differ, where the first character does, and both texts there."""

    agree: int
    prompts: int
    differences: tuple[tuple[int, int, str, str], ...]
    """(prompt number, position, what the first server wrote there, what the second)"""
    errors: tuple[str, ...]
    degenerate: tuple[int, int]
    """Answers of each server that fail their score: agreeing on `!!!!` is no agreement."""


def compare(a: Sequence[str | None], b: Sequence[str | None], errors: Sequence[str] = ()) -> Agreement:
    """Two lists of answers to the same prompts; None where there was none."""
    pairs = [(n, x, y) for n, (x, y) in enumerate(zip(a, b, strict=True)) if x is not None and y is not None]
    differences = []
    for n, x, y in pairs:
        if x != y:
            at = next((i for i, (c, d) in enumerate(zip(x, y, strict=False)) if c != d), min(len(x), len(y)))
            differences.append((n, at, x[at : at + 30], y[at : at + 30]))
    bad = (sum(not score(x) for _, x, _ in pairs), sum(not score(y) for _, _, y in pairs))
    return Agreement(len(pairs) - len(differences), len(pairs), tuple(differences), tuple(errors), bad)


async def ask(plan: Plan, server: Server) -> tuple[list[str | None], list[str]]:
    """All prompts in order, `plan.concurrency` at a time: answers (None where there was none) and errors."""
    prompts, gate = Prompts(plan), asyncio.Semaphore(plan.concurrency)
    errors: list[str] = []
    async with client.session(plan.timeout) as http:
        name = await client.model(http, server)
        url, head = server.url + protocol.path(server), client.headers(server)

        async def one(n: int) -> str | None:
            async with gate:
                reply = await client.generate(http, url, head, protocol.request(plan, server, name, prompts[n], n))
            if reply.error:
                errors.append(f"{server.name}, prompt {n}: {reply.error}")
                return None
            return reply.text

        return list(await asyncio.gather(*(one(n) for n in range(plan.generations)))), errors


async def measure(plan: Plan) -> tuple[Agreement, Agreement]:
    """(A against B, A against itself) for the two servers of a plan."""
    if len(plan.server) != 2 or plan.temperature:
        raise ToolError("agreement needs two servers and temperature 0")
    first, second = plan.server
    a, errors_a = await ask(plan, first)
    b, errors_b = await ask(plan, second)
    again, errors_again = await ask(plan, first)
    return compare(a, b, [*errors_a, *errors_b]), compare(a, again, errors_again)


def lines(found: Agreement, control: Agreement) -> list[str]:
    told = [f"warning: {WARNING}"]
    for words, one in (("A against B", found), ("control, A against itself", control)):
        if not one.prompts:
            told.append(f"{words}: nothing measured")
            continue
        interval = stats.wilson(one.agree, one.prompts)
        told.append(f"{words}: {one.agree} of {one.prompts} agree (95 % {interval.low:.0%} to {interval.high:.0%})")
    if found.differences:
        places = sorted(at for _, at, _, _ in found.differences)
        told.append(f"first difference at character {places[0]} to {places[-1]}, median {places[len(places) // 2]}")
        told += [f"  prompt {n}, character {at}: {x!r} | {y!r}" for n, at, x, y in found.differences]
    if any(found.degenerate):
        told.append(
            f"degenerate answers: {found.degenerate[0]} of A, {found.degenerate[1]} of B; agreeing on them is no "
            "agreement"
        )
    if found.prompts and found.agree < found.prompts and control.agree < control.prompts:
        told.append("A does not agree with itself either: what differs between A and B cannot be told from this")
    return told + [f"error: {error}" for error in (*found.errors, *control.errors)]
