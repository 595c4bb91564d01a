"""What the guard exposes to Prometheus, in a registry of its own; dashboard and alert rules use its names."""

from __future__ import annotations

from esimd_soak.plan import Server

LABELS = ("server", "card")


class Metrics:
    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._registry = registry = CollectorRegistry()

        def counter(name: str, words: str, *labels: str) -> Counter:
            return Counter(f"esimd_soak_{name}", words, (*LABELS, *labels), registry=registry)

        self._generations = counter("generations", "Generations scored.")
        self._collapses = counter("collapses", "Generations that failed their score.")
        self._kinds = counter("collapses_by_kind", "Failed generations by kind; one may be of several.", "kind")
        self._errors = counter("errors", "Requests that ended in no scored text.", "error")
        self._confirmed = counter("confirmed", "Confirmed collapses.")
        self._actions = counter("actions", "What became of the command on a confirmed collapse.", "result")
        self._corrupted = counter("corrupted_requests", "The server's own count of NaN logits, as seen to rise.")
        self._up = Gauge("esimd_soak_up", "1 when the server answers /health.", LABELS, registry=registry)
        self._clean = Gauge(
            "esimd_soak_last_clean_seconds", "When a generation last passed.", LABELS, registry=registry
        )
        self._seconds = Histogram("esimd_soak_canary_seconds", "Time of a canary.", LABELS, registry=registry)

    @property
    def content_type(self) -> str:
        from prometheus_client import CONTENT_TYPE_LATEST

        return CONTENT_TYPE_LATEST

    def page(self) -> bytes:
        from prometheus_client import generate_latest

        return generate_latest(self._registry)

    def begin(self, server: Server) -> None:
        """Series exist at 0 from the start: a rate over a series that appears with its first event sees nothing."""
        for counter in (self._generations, self._collapses, self._confirmed, self._corrupted):
            counter.labels(server.name, server.card)

    def generation(self, server: Server, kinds: tuple[str, ...], t: float) -> None:
        labels = (server.name, server.card)
        self._generations.labels(*labels).inc()
        if not kinds:
            self._clean.labels(*labels).set(t)
            return
        self._collapses.labels(*labels).inc()
        for kind in kinds:
            self._kinds.labels(*labels, kind).inc()

    def error(self, server: Server, kind: str) -> None:
        self._errors.labels(server.name, server.card, kind).inc()

    def confirmed(self, server: Server) -> None:
        self._confirmed.labels(server.name, server.card).inc()

    def action(self, server: Server, result: str) -> None:
        self._actions.labels(server.name, server.card, result).inc()

    def corrupted(self, server: Server, more: float) -> None:
        self._corrupted.labels(server.name, server.card).inc(more)

    def up(self, server: Server, up: bool) -> None:
        self._up.labels(server.name, server.card).set(up)

    def seconds(self, server: Server, seconds: float) -> None:
        self._seconds.labels(server.name, server.card).observe(seconds)
