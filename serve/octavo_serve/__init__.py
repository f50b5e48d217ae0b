"""The server: artifacts in, answers out. It never writes."""
