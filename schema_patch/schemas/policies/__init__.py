"""What ships with the kit as data: operators and what they do, compilers, runtimes, devices. One TOML file each."""

from __future__ import annotations

from importlib import resources
from typing import TypeVar

import msgspec

from schema_patch.model import ToolError

Policy = TypeVar("Policy")


def path(name: str) -> str:
    """Where the file of a policy lies; errors name it."""
    return str(resources.files(__package__) / f"{name}.toml")


def data(name: str) -> bytes:
    """The bytes of a policy."""
    return (resources.files(__package__) / f"{name}.toml").read_bytes()


def load(name: str, kind: type[Policy]) -> Policy:
    """A policy as values of `kind`. Raises ToolError where the file breaks its own rules."""
    try:
        return msgspec.toml.decode(data(name), type=kind)
    except msgspec.MsgspecError as error:
        raise ToolError(f"not the policy that the kit reads: {error}", path(name)) from error
