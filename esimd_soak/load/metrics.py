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

        self._counters = {
            "generations": counter("generations", "Generations scored."),
            "collapses": counter("collapses", "Generations that failed their score."),
            "kinds": counter("collapses_by_kind", "Failed generations by kind; one may be of several.", "kind"),
            "errors": counter("errors", "Requests that ended in no scored text.", "error"),
            "confirmed": counter("confirmed", "Confirmed collapses."),
            "actions": counter("actions", "What became of the command on a confirmed collapse.", "result"),
            "corrupted": counter("corrupted_requests", "The server's own count of NaN logits, as seen to rise."),
        }
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
        for name in ("generations", "collapses", "confirmed", "corrupted"):
            self.count(name, server, more=0)

    def generation(self, server: Server, kinds: tuple[str, ...], t: float) -> None:
        self.count("generations", server)
        if not kinds:
            self._clean.labels(server.name, server.card).set(t)
            return
        self.count("collapses", server)
        for kind in kinds:
            self.count("kinds", server, kind)

    def count(self, name: str, server: Server, *labels: str, more: float = 1) -> None:
        """`labels`: of errors, actions and kinds, which."""
        self._counters[name].labels(server.name, server.card, *labels).inc(more)

    def up(self, server: Server, up: bool) -> None:
        self._up.labels(server.name, server.card).set(up)

    def seconds(self, server: Server, seconds: float) -> None:
        self._seconds.labels(server.name, server.card).observe(seconds)
