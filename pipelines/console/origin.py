"""Whether a request comes from the server's own pages: one that changes something, and any where no login is asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "::1")
READING = ("GET", "HEAD", "OPTIONS")
HEADER = "x-tidecast-console"
"""Sent by the pages with what changes something: no form can, and a script of another origin has to be allowed to."""


def objection(headers: Mapping[str, str], origins: Collection[str] = ()) -> str | None:
    """Say what is wrong with where a request comes from; None where nothing is.

    Its session cookie alone proves nothing: a browser sends it with what any page makes it send. OWASP's cheat sheet on
    cross-site request forgery has the three: a custom header, the origin, and what fetch metadata say.

    Args:
        headers: of the request, names in lower case.
        origins: addresses by which browsers reach the pages, besides the host that the request names.
    """
    if HEADER not in headers:
        return f"the header {HEADER} is missing"
    return _sent_from(headers, origins)


class LoopbackOnly:
    """ASGI: lets through what pages of the server itself ask on this computer, where it asks nobody for a login.

    Any page that a person has open can make the browser send a form there; or one whose name is given this computer's
    address meanwhile (DNS rebinding) reads and changes all, as it counts as the server's own.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Hand a request on, or answer 403 with what is wrong with it."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", ())}
        if scope["type"] != "http" or (problem := foreign(scope["method"], headers)) is None:
            await self._app(scope, receive, send)
            return
        said = (
            f"Refused: {problem}. Nobody is asked for a login here, so that only its own pages are let in: open it as "
            "localhost, from elsewhere by a forwarded port (ssh -L)."
        )
        kind = [(b"content-type", b"text/plain; charset=utf-8")]
        await send({"type": "http.response.start", "status": 403, "headers": kind})
        await send({"type": "http.response.body", "body": said.encode()})


def foreign(method: str, headers: Mapping[str, str]) -> str | None:
    """Say why a request to a server of the loopback is not of its own pages; None where it is, or of no browser.

    Args:
        method: in capitals.
        headers: names in lower case.
    """
    asked = headers.get("host", "")
    if _host_name(asked) not in LOOPBACK:
        return f"it asks for the host {asked!r}, not for one of {', '.join(LOOPBACK)}"
    return None if method in READING else _sent_from(headers)


def _host_name(asked: str) -> str | None:
    try:
        return urlsplit(f"//{asked}").hostname
    except ValueError:
        return None


def _sent_from(headers: Mapping[str, str], origins: Collection[str] = ()) -> str | None:
    """Say from which other site or origin a browser has sent a request; None where it did not."""
    if (site := headers.get("sec-fetch-site", "same-origin")) != "same-origin":
        return f"it was sent from a page of another site or origin ({site})"
    own = {headers.get("host", ""), *(urlsplit(address).netloc for address in origins)} - {""}  # as that of "null"
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc not in own:
        return f"it was sent from {origin}"
    return None
