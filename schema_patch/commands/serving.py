"""The commands for whoever serves a model: `caches` and `splitting-ops`. Print like cli.py, which they belong to."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from schema_patch.model import Finding

from .help import Command, examples

if TYPE_CHECKING:
    from schema_patch.installed.caches import Cache


@click.command(
    cls=Command, epilog=examples("schema-patch caches", "schema-patch caches --binary dist/mylib.whl --namespace mylib")
)
@click.argument("directories", nargs=-1, metavar="[DIR]...")
@click.option(
    "--binary", multiple=True, metavar="PATH", help="An installed library, wheel or site-packages to compare with."
)
@click.option("--namespace", multiple=True, metavar="NS", help="Look for operators of this namespace too (repeat).")
@click.option("--purge", is_flag=True, help="Delete what was listed. Without it nothing is deleted.")
def caches(directories: tuple[str, ...], binary: tuple[str, ...], namespace: tuple[str, ...], purge: bool) -> int:
    """List compile caches (Inductor, vLLM, Triton) and the known operators in them.

    Without DIR the usual places are looked at, as the environment names them. With --binary, says which caches are
    older than a library whose operators they name: a graph in them comes back whatever the library says now.
    """
    from schema_patch.installed import caches as store
    from schema_patch.schemas import table

    known = table.load()
    found = store.find(directories, {*known.all_namespaces, *namespace}, os.environ)
    findings = _older_than(found, binary)
    for cache in found:
        click.echo(_line(cache))
        for op in cache.operators:
            click.echo(f"    {op}")
    for finding in findings:
        click.echo(f"{finding.location}: {finding.severity.value}: {finding.code} {finding.message}")
    if not found:
        click.echo("no compile cache found")
    elif purge:
        for cache in found:
            store.purge(cache)
            click.echo(f"purged {cache.path}")
        return 0
    else:
        click.echo("nothing deleted: --purge deletes all that is listed", err=True)
    return 1 if findings else 0


@click.command("splitting-ops", cls=Command, epilog=examples(
    "schema-patch splitting-ops", "schema-patch splitting-ops --namespace custom_esimd_kernels_vllm",
))  # fmt: skip
@click.option("--namespace", multiple=True, metavar="NS", help="Only operators of this namespace (repeat).")
@click.option(
    "--keep", multiple=True, metavar="NS::OP", help="Operators of the server's own list to put first (repeat)."
)
def splitting_ops(namespace: tuple[str, ...], keep: tuple[str, ...]) -> None:
    """Print the known operators as vLLM's splitting_ops wants them, to keep them out of compiled graphs.

    The list replaces the server's own, which names its attention operators: give those with --keep.
    """
    import msgspec

    from schema_patch.schemas import table

    known = table.load()
    names = [
        f"{space}::{op}"
        for op, entry in known.entries.items()
        for space in entry.namespaces or known.namespaces
        if space in (namespace or (known.namespaces[0], *entry.namespaces[:1]))
    ]
    click.echo(msgspec.json.encode({"splitting_ops": [*keep, *names]}).decode())
    if not keep:
        click.echo("this replaces vLLM's own list (its attention operators): add them with --keep", err=True)


def _older_than(found: list[Cache], paths: tuple[str, ...]) -> list[Finding]:
    from schema_patch.installed import caches as store
    from schema_patch.schemas import table
    from schema_patch.verify import survey

    return store.older(found, survey.survey(paths, table=table.load()).checked) if paths else []


def _line(cache: Cache) -> str:
    days = (time.time() - cache.newest) / 86400
    age = f"last written {days:.1f} days ago" if cache.files else "empty"
    hidden = f", {cache.unreadable} unreadable" if cache.unreadable else ""
    named = f"{len(cache.operators)} known operators" if cache.operators else "no known operator"
    return f"{cache.kind}: {cache.path}: {cache.files} files, {cache.size / 2**20:.1f} MiB, {age}{hidden}; {named}"
