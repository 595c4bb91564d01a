"""Runs -> one run, a Parquet file or a CSV file. Knows folders of records; no network and no statistics."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from esimd_soak.model import ToolError

from . import folder as store
from .records import Generation


def merge(folders: Sequence[Path], target: Path, *, same_prompts: bool = False) -> int:
    """Lays the files of several clients side by side in a new folder; returns how many. The originals stay.

    ToolError when the plans differ in anything but their servers, when two clients used one name for two servers, and
    when two had one seed and so the same prompts: at one server always, at several unless `same_prompts`.
    """
    metas = [store.read_meta(folder) for folder in folders]
    if target.exists() and any(target.iterdir()):
        raise ToolError("expected a new or empty folder, found files in it", str(target))
    known: dict[str, str] = {}
    for folder, meta in zip(folders, metas, strict=True):
        if _told(meta) != _told(metas[0]):
            keys = sorted(k for k in _told(meta) if _told(meta)[k] != _told(metas[0]).get(k))
            raise ToolError(
                f"its plan differs from that of {folders[0]} in {', '.join(keys)}: not one experiment", str(folder)
            )
        for server in meta.plan["server"]:
            if known.setdefault(server["name"], server["url"]) != server["url"]:
                raise ToolError(
                    f"server {server['name']} is {server['url']} here and {known[server['name']]} there", str(folder)
                )
    _refuse_doubles(folders, metas, same_prompts)
    ids = [identity for meta in metas for identity in (meta.id, *(str(p["id"]) for p in meta.parts))]
    if len(set(ids)) != len(ids):
        raise ToolError(
            "one run is given twice; a generation counts once", str(folders[ids.index(max(ids, key=ids.count))])
        )
    target.mkdir(parents=True, exist_ok=True)
    copied = 0
    for i, folder in enumerate(folders):
        for kind in store.FILES:
            for path in store.segments(folder, kind):
                # The client's number goes into the name: two clients of one host must not overwrite each other.
                shutil.copy2(path, target / f"{kind}-{i:03d}-{path.name.removeprefix(f'{kind}-')}")
                copied += 1
    servers = {server["name"]: server for meta in metas for server in meta.plan["server"]}
    parts = [
        {"id": m.id, "folder": f.name, "digest": m.digest, "seed": m.plan.get("seed")}
        for f, m in zip(folders, metas, strict=True)
    ]
    whole = msgspec.structs.replace(
        metas[0],
        id="+".join(meta.id for meta in metas),
        plan={**metas[0].plan, "server": list(servers.values())},
        parts=parts,
    )
    store.write_whole(target / "meta.json", msgspec.json.format(msgspec.json.encode(whole), indent=2))
    return copied


def _refuse_doubles(folders: Sequence[Path], metas: Sequence[store.Meta], same_prompts: bool) -> None:
    seen: list[tuple[object, set[str], Path]] = []
    for folder, meta in zip(folders, metas, strict=True):
        seeds = [meta.plan.get("seed"), *(part.get("seed") for part in meta.parts if "seed" in part)]
        urls = {str(server["url"]) for server in meta.plan["server"]}
        for seed in seeds:
            for other, known, where in seen:
                if seed != other or where == folder or (same_prompts and not urls & known):
                    continue
                at_one = (
                    "and one server: its answers would count twice"
                    if urls & known
                    else (
                        "at other servers; give each client a seed of its own, or say --same-prompts if that is meant"
                    )
                )
                raise ToolError(f"it has the seed of {where} ({seed}), so the same prompts, {at_one}", str(folder))
            seen.append((seed, urls, folder))


def _told(meta: store.Meta) -> dict[str, object]:
    # Each client has prompts of its own (another seed) and servers of its own; all else makes the experiment.
    without = ("server", "stop", "client", "watch", "seed", "goodput", "judged", "prompts")
    told = {key: value for key, value in meta.plan.items() if key not in without}
    return told | {"prompts": meta.plan.get("prompts_sha256") or meta.plan.get("prompts")}


def parquet(folders: Sequence[Path], target: Path, chunk: int = 100_000) -> int:
    """Every generation of the runs as one Parquet file with the column `run_name`; returns the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, real, whole = pa.string(), pa.float64(), pa.int64()
    types = {str: text, float: real, int: whole, bool: pa.bool_(), tuple[str, ...]: pa.list_(text)}
    types[dict[int, int]] = pa.map_(whole, whole)
    fields = {field.name: types[field.type] for field in msgspec.structs.fields(Generation)}
    schema = pa.schema([("run_name", text), *fields.items()])
    every = _every(folders)
    temporary, rows = target.with_name(f".{target.name}.part"), 0
    with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        while part := list(itertools.islice(every, chunk)):
            columns: dict[str, list[object]] = {"run_name": [name for name, _ in part]}
            for key in fields:
                values = (getattr(record, key) for _, record in part)
                columns[key] = [list(value.items()) if isinstance(value, dict) else value for value in values]
            writer.write_table(pa.table(columns, schema=schema))
            rows += len(part)
    temporary.replace(target)
    return rows


def table(folders: Sequence[Path], target: Path) -> int:
    """Every generation of the runs as one CSV file (RFC 4180) with the column `run_name`; returns how many."""
    import csv

    names = list(Generation.__struct_fields__)
    every = _every(folders)
    temporary, rows = target.with_name(f".{target.name}.part"), 0
    with temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["run_name", *names])
        for rows, (run, record) in enumerate(every, 1):  # noqa: B007  as many as there were
            writer.writerow([run, *(_cell(getattr(record, name)) for name in names)])
    temporary.replace(target)
    return rows


def _every(folders: Sequence[Path]) -> Iterator[tuple[str, Generation]]:
    """The name of its run and each generation; that each folder is one is seen before a file is begun."""
    runs = [(store.read_meta(folder).name, folder) for folder in folders]
    return ((name, record) for name, folder in runs for record in store.read(folder, "generations", Generation))


def _cell(value: object) -> object:
    if isinstance(value, tuple):
        return " ".join(value)
    return " ".join(f"{key}:{count}" for key, count in value.items()) if isinstance(value, dict) else value
