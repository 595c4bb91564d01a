"""Something else for the device to do meanwhile: races hide on an idle one. Knows no operators."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from types import TracebackType

import torch


class Load:
    """While entered, a second thread (on a GPU: with a stream of its own) calls `work` and multiplies matrices."""

    def __init__(self, device: str, work: Callable[[], object]) -> None:
        self._device, self._work = device, work
        self._stop = threading.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        self._started.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        stream = torch.xpu.Stream() if self._device == "xpu" else None
        with torch.no_grad(), torch.xpu.stream(stream) if stream else nullcontext():
            matrix = torch.ones(192, 192, device=self._device)
            while not self._stop.is_set():
                self._work()
                matrix @ matrix
                self._started.set()
                if stream:
                    stream.synchronize()
