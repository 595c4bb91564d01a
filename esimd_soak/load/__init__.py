"""A server under load: requests, streams, retries, health, gauges."""
