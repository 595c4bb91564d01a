"""Something else for the device to do meanwhile: races hide on an idle one. Knows no operators."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from types import TracebackType

import torch

LEAST = 3  # calls, however soon the first thread is done


class Load:
    """While entered, a second thread (on a GPU: with a stream of its own) calls `work` and multiplies matrices.

    What `work` raised is raised at the end.
    """

    _running: Future[None]

    def __init__(self, device: str, work: Callable[[], object]) -> None:
        self._device, self._work = device, work
        self._stop = threading.Event()
        self._started = threading.Event()
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> Load:
        self._running = self._pool.submit(self._run)
        self._started.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._pool.shutdown()
        if error is None:
            self._running.result()

    def _run(self) -> None:
        stream = torch.xpu.Stream() if self._device == "xpu" else None
        with torch.no_grad(), torch.xpu.stream(stream) if stream else nullcontext():
            matrix = torch.ones(192, 192, device=self._device)
            for turn in itertools.count():
                if turn >= LEAST and self._stop.is_set():
                    return
                try:
                    self._work()
                finally:
                    self._started.set()
                matrix @ matrix
                if stream:
                    stream.synchronize()
