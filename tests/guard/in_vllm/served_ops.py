"""A plugin that brings the operators and their lying fakes into every process of a server, as a serving image does."""

import os

import torch


def register() -> None:
    torch.ops.load_library(os.environ["PUBLISHED_OPS"])
    import esimd_fake_ops  # noqa: F401
