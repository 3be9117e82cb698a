"""Asks whoever may forbid it before executors of a pool change hands."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus

from configs.pool import Veto
from models.pool.wants import Grant


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """What a hook answers is its own: a redirect is no answer."""

    def redirect_request(self, *args: object) -> None:
        return None


def ask_veto(veto: Veto, pool: str, changes: Mapping[str, tuple[int, Grant]]) -> str:
    """Ask whether grants may change; return why they may not, "" where they may.

    Only status 2xx within the time allowed says that they may; who hangs, fails or answers otherwise has changed
    nothing.

    Args:
        veto: whom to ask.
        pool: its name.
        changes: executors before, and what is granted, by job.
    """
    told = [
        {"job": job, "executors": {"before": before, "after": one.executors}, "reason": one.reason}
        for job, (before, one) in changes.items()
    ]
    body = json.dumps({"pool": pool, "changes": told}).encode()
    asked = urllib.request.Request(veto.url, body, {"Content-Type": "application/json"}, method="POST")
    where = urllib.parse.urlsplit(veto.url).hostname  # a URL may hold a secret
    try:
        with urllib.request.build_opener(_NoRedirect).open(asked, timeout=veto.timeout_s):
            return ""
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.FORBIDDEN:
            return f"its hook at {where} forbids it; nothing changes"
        return f"its hook at {where} answers {error.code} and neither 2xx (may) nor 403 (may not); nothing changes"
    except (OSError, ValueError) as error:
        return f"its hook at {where} does not answer within {veto.timeout_s:g} s ({error}); nothing changes"
