"""eo-audit: was delivery exactly once? An audit of Kafka log dumps."""

__version__ = "0.1.0"
