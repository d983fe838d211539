"""The tools of a host as tools of agent frameworks. Each module needs the extra of its name."""
