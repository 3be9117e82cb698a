"""Serving by the path that the settings name."""

from __future__ import annotations

from configs.settings import Settings


def serve(settings: Settings) -> None:
    """Serve until SIGTERM, ctrl-C, or until another server takes over; a path's imports are paid by itself alone."""
    if settings.serving.path == "fast":
        from pipelines.serve.fast.server import serve_fast

        serve_fast(settings)
    else:
        from pipelines.serve.stream.server import serve_stream

        serve_stream(settings)
