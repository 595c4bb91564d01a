"""`python -m esimd_ops graphs`: records and caches -> a table. Prints like cli.py, which it belongs to."""

from __future__ import annotations

import json
import os

import click

from schema_patch.commands.help import Command, examples

STATES = ("traced", "opaque", "eager", "absent")


@click.command(
    cls=Command, epilog=examples("python -m esimd_ops graphs", "python -m esimd_ops graphs --live --namespace mylib")
)
@click.option(
    "--cache", "caches", multiple=True, metavar="DIR", help="Read this compile cache (repeat) [default: all]."
)
@click.option(
    "--live", is_flag=True, help="Read what running servers have seen: start them with SCHEMA_KIT_GRAPHS=1 or =DIR."
)
@click.option("--namespace", multiple=True, metavar="NS", help="Operators of this namespace too (repeat).")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def graphs(caches: tuple[str, ...], live: bool, namespace: tuple[str, ...], form: str) -> int:
    """Tell which operators are in a server's compiled graphs.

    traced: called by a compiled graph; opaque: inside another operator that a graph calls; eager: outside of graphs;
    absent: not seen. Without --live, reads the caches in the usual places, which only tell what was traced. Exit code
    2 where there is nothing to read.
    """
    from schema_patch.schemas import table

    if live and caches:
        raise click.UsageError("--live reads what processes have seen, --cache what they left: ask for one of them")
    known = table.everything()
    found = _live() if live else _cached(caches, {*known.all_namespaces, *namespace})
    if found is None:
        return 2
    spaces = {op.partition("::")[0] for op in found} or {known.namespaces[0]}
    for name, entry in known.entries.items():
        for space in spaces & set(entry.namespaces or known.namespaces):
            found.setdefault(f"{space}::{name}", {})
    if form == "json":
        click.echo(json.dumps(found, indent=1))
    else:
        _table(found)
    return 0


def _live() -> dict[str, dict[str, str]] | None:
    from esimd_ops.graphs import live

    where = live.folder()
    records = live.read(where)
    if not records:
        click.echo(
            f"{where}: error: expected records of running processes, found none: start the server with "
            f"{live.VARIABLE}=1 (or =DIR, here too) and the kit's vLLM plugin installed",
            err=True,
        )
        return None
    found: dict[str, dict[str, str]] = {}
    for record in records:
        click.echo(f"process {record.pid}: {record.command}", err=True)
        for op, states in record.operators.items():
            found.setdefault(op, {}).update({state: seen.place for state, seen in states.items()})
    return found


def _cached(directories: tuple[str, ...], namespaces: set[str]) -> dict[str, dict[str, str]] | None:
    from esimd_ops.graphs import cached

    caches = cached.find(directories, namespaces, os.environ)
    for cache in caches:
        click.echo(f"{cache.kind} cache {cache.path}: {cache.files} files", err=True)
    if not caches:
        click.echo("error: expected a compile cache in the usual places, found none: name one with --cache", err=True)
        return None
    return {op: {"traced": ", ".join(str(c.path) for c in named)} for op, named in cached.traced(caches).items()}


def _table(found: dict[str, dict[str, str]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    table = Table(*(Column(name, overflow="fold") for name in ("operator", "is", "seen at")), header_style="bold")
    absent = sorted(op for op, states in found.items() if not states)
    for op, states in sorted(found.items()):
        for state in STATES:
            if state in states:
                table.add_row(op, f"[{'green' if state == 'traced' else 'yellow'}]{state}[/]", escape(states[state]))
    if table.row_count:
        Console().print(table)
    counts = [(state, sum(state in states for states in found.values())) for state in STATES[:-1]]
    told = ", ".join(f"{count} {state}" for state, count in counts if count)
    click.echo(f"{len(found)} operators: {told or 'none seen'}, {len(absent)} absent")
