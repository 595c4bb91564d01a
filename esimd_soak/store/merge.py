"""Runs -> one run, or a Parquet file. Knows folders of records; no network and no statistics."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from esimd_soak.model import ToolError

from . import folder as store
from .records import Generation


def merge(folders: Sequence[Path], target: Path) -> int:
    """Lays the files of several clients side by side in a new folder; returns how many. The originals stay.

    ToolError when the plans differ in anything but their servers, or two clients used one name for two servers.
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
    parts = [{"id": m.id, "folder": f.name, "digest": m.digest} for f, m in zip(folders, metas, strict=True)]
    whole = msgspec.structs.replace(
        metas[0],
        id="+".join(meta.id for meta in metas),
        plan={**metas[0].plan, "server": list(servers.values())},
        parts=parts,
    )
    store.write_whole(target / "meta.json", msgspec.json.format(msgspec.json.encode(whole), indent=2))
    return copied


def _told(meta: store.Meta) -> dict[str, object]:
    # Each client has prompts of its own (another seed) and servers of its own; all else makes the experiment.
    return {key: value for key, value in meta.plan.items() if key not in ("server", "stop", "client", "watch", "seed")}


def parquet(folders: Sequence[Path], target: Path, chunk: int = 100_000) -> int:
    """Every generation of the runs as one Parquet file with the column `run_name`; returns the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not folders:
        raise ToolError("expected at least one run, found none")
    text, real, whole = pa.string(), pa.float64(), pa.int64()
    types = {"str": text, "float": real, "int": whole, "tuple[str, ...]": pa.list_(text)}
    fields = {name: types[str(kind)] for name, kind in Generation.__annotations__.items()}
    schema = pa.schema([("run_name", text), *fields.items()])
    temporary, rows = target.with_name(f".{target.name}.part"), 0
    with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        for folder in folders:
            name = store.read_meta(folder).name
            columns: dict[str, list[object]] = {key: [] for key in schema.names}

            def flush(columns: dict[str, list[object]] = columns) -> None:
                writer.write_table(pa.table(columns, schema=schema))
                for column in columns.values():
                    column.clear()

            for record in store.read(folder, "generations", Generation):
                columns["run_name"].append(name)
                for key in fields:
                    columns[key].append(getattr(record, key))
                rows += 1
                if rows % chunk == 0:
                    flush()
            flush()
    temporary.replace(target)
    return rows
