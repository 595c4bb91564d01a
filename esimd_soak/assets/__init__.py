"""Files for other programs: a Grafana dashboard and Prometheus alert rules for what `esimd-soak guard` exposes."""
