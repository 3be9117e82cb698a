"""Whether a request that changes something comes from the console's own pages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

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
    if (site := headers.get("sec-fetch-site", "same-origin")) != "same-origin":
        return f"it was sent from a page of another site or origin ({site})"
    own = {headers.get("host", ""), *(urlsplit(address).netloc for address in origins)} - {""}  # as that of "null"
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc not in own:
        return f"it was sent from {origin}"
    return None
