"""What the server has done, as Prometheus reads it."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """The counts of one application, in a ``registry`` of their own."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        """Start at nothing; ``waiting`` is how many sentences wait now."""
        self.registry = registry = CollectorRegistry()
        labels = ("endpoint", "status")
        self.requests = Counter("convs2s_requests", "Requests answered", labels, registry=registry)
        self.seconds = Histogram(
            "convs2s_request_seconds", "Seconds to the answer", ("endpoint",), registry=registry
        )
        self.sentences = Counter("convs2s_sentences", "Sentences translated", registry=registry)
        queue = Gauge("convs2s_waiting_sentences", "Sentences that wait", registry=registry)
        queue.set_function(waiting)
