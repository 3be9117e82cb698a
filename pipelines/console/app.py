"""The console as a FastAPI application: pages, their data, and the switch; every route demands a login."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, HTTPException, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.middleware.gzip import GZipMiddleware

from configs.errors import SettingsError
from pipelines.console.access import Access
from pipelines.console.asked import PageSources, problems
from pipelines.console.backfills import backfill_rows
from pipelines.console.change import StaleError
from pipelines.console.follow import READING
from pipelines.console.lists import backfills_page, models_page, pools_page, topologies_page
from pipelines.console.models import model_rows
from pipelines.console.origin import objection
from pipelines.console.pages import job_page, jobs_page, refusal_page
from pipelines.console.pools import pool_of, pool_rows
from pipelines.console.read.fold import ReadModel
from pipelines.console.read.job import FollowedJob
from pipelines.console.shown import job_details, rows_since
from pipelines.console.topologies import topology_rows

STATIC: Mapping[str, tuple[str, str, str]] = {
    "page.css": ("pipelines.html", "assets", "text/css"),
    **{name: ("pipelines.console", "static", "text/css") for name in ("console.css", "uplot/uPlot.min.css")},
    **{
        f"{name}.js": ("pipelines.console", "static", "text/javascript")
        for name in (
            "theme", "jobs", "job", "pools", "backfills", "models", "topologies", "switch", "plots", "live",
            "uplot/uPlot.iife.min",
        )
    },
}  # fmt: skip
"""Files that the pages load: package and folder that each lies in, and its type."""
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
}  # fmt: skip
"""Of every answer: nothing of other hosts is loaded, no script in a page is run, and no foreign page frames it."""
JobName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class ModeRequest(BaseModel, extra="forbid"):
    """A change of a job's mode, as the page asks for it.

    Attributes:
        mode: that it is to have.
        seen: wall time (epoch seconds) of the word on its mode that the page showed; None: it showed none.
        confirmed: name of the job, which says that a person has confirmed the change of this one.
    """

    mode: Literal["observe", "freeze", "act"]
    seen: float | None = Field(ge=0)
    confirmed: str


def build_app(
    look: Callable[[], tuple[ReadModel, str]], change: Callable[[str, str, float | None, str], None], access: Access,
    beside: PageSources,
) -> FastAPI:  # fmt: skip
    """Build the application.

    All routes answer 401 without a login and 403 to one that may not look; a change answers 403 to one that may not
    edit and to a request from elsewhere, 409 where the page was stale, 422 without confirmation, 503 without a broker.

    Args:
        look: returns the newest model, and why there is no newer one ("" while there is).
        change: gives a job another mode, as `pipelines.console.change.ModeSwitch.change` does.
        access: the logins.
        beside: what is shown beside the topics; its answers are there at once.
    """
    viewer, editor = Depends(access.viewer), Depends(access.editor)
    app = FastAPI(title="Tidecast console", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(GZipMiddleware, minimum_size=2000, compresslevel=4)
    _guard(app, access)
    _add_lists(app, look, beside, viewer)

    def known(job: str) -> FollowedJob:
        seen = look()[0].jobs.get(job)
        if seen is None:
            raise HTTPException(404, f"nothing is known of a job {job}: no metrics, no contract, no word")
        return seen

    @app.get("/", dependencies=[viewer])
    def jobs() -> HTMLResponse:
        """Answer with the page of all jobs."""
        return HTMLResponse(jobs_page())

    @app.get("/jobs/{job}", dependencies=[viewer])
    def job(job: JobName) -> HTMLResponse:
        """Answer with the page of one job, also of one that nothing is known of yet."""
        return HTMLResponse(job_page(job))

    @app.get("/data/jobs", dependencies=[viewer])
    def jobs_data(since: Annotated[int, Query()] = 0) -> JSONResponse:
        """Answer with the rows of the jobs that changed after a revision, and that of this answer."""
        (model, problem), now = look(), time.time()
        since = since if since <= model.revision else 0
        rows = rows_since(model, since, now)
        reading = problem == READING
        return JSONResponse(
            {"revision": model.revision, "now": now, "problem": problem, "reading": reading, "rows": rows}
        )

    @app.get("/data/jobs/{job}", dependencies=[viewer])
    def job_data(job: JobName, after: Annotated[float, Query(allow_inf_nan=False)] = 0.0) -> JSONResponse:
        """Answer with what the page of a job shows; of its history what is later than a wall time, epoch seconds."""
        seen, (model, problem), now = known(job), look(), time.time()
        pool = pool_of(model, job, now)
        return JSONResponse({**job_details(seen, now, after), "pool": pool, "problem": problem})

    @app.post("/data/jobs/{job}/mode")
    def mode(job: JobName, asked: ModeRequest, request: Request, login: str = editor) -> dict[str, str]:
        """Give a job another mode, as its page asks."""
        if (problem := objection(request.headers, access.origins)) is not None:
            raise HTTPException(403, f"Refused: {problem}. Change modes on the console's own page.")
        known(job)
        if asked.confirmed != job:
            raise HTTPException(422, f"confirmed={asked.confirmed!r}: the job's own name, {job}, is expected")
        try:
            change(job, asked.mode, asked.seen, login)
        except StaleError as error:
            raise HTTPException(409, f"{error}") from None
        except (RuntimeError, ConnectionError, SettingsError, ValueError) as error:  # the first: the broker's clients
            raise HTTPException(503, f"The change is not confirmed: {error}") from None
        return {"job": job, "mode": asked.mode}

    @app.get("/static/{name:path}", dependencies=[viewer])
    def static(name: str, request: Request) -> Response:
        """Answer with a file that the pages load; with status 304 where the browser has it already."""
        if name not in STATIC:
            raise HTTPException(404, f"no such file: {name}")
        content, tag = _file(name)
        headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=STATIC[name][2], headers=headers)

    return app


def _guard(app: FastAPI, access: Access) -> None:
    """Give every answer the headers that a browser is to have, and say refusals as a page or as JSON."""

    @app.middleware("http")
    async def guarded(request: Request, following: Any) -> Response:
        response: Response = await following(request)
        response.headers.update(HEADERS)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    @app.exception_handler(StarletteHTTPException)
    def refused(request: Request, error: StarletteHTTPException) -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            return JSONResponse({"detail": error.detail}, error.status_code, error.headers)
        page = refusal_page(error.status_code, f"{error.detail}", _up(request), access.login_url)
        return HTMLResponse(page, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    def malformed(request: Request, error: RequestValidationError) -> Response:
        # Without what was sent: that is no JSON where it holds a NaN, and the answer would be a fault of ours.
        return JSONResponse(
            {"detail": [{name: one[name] for name in ("type", "loc", "msg")} for one in error.errors()]}, 422
        )


def _add_lists(app: FastAPI, look: Callable[[], tuple[ReadModel, str]], beside: PageSources, viewer: Any) -> None:
    """Add the pages that are lists of what the topics and what is beside them say, and their data."""

    def listed(name: str, page: Callable[[], str], data: Callable[[ReadModel, float], dict[str, Any]]) -> None:
        """Add the page of a list, and its data: `rows`, `problem` beside that of the topics, whether these are read."""

        def values() -> JSONResponse:
            (model, problem), now = look(), time.time()
            found = data(model, now)
            said = " ".join(part for part in (problem, found.pop("problem", "")) if part)
            return JSONResponse({"now": now, "problem": said, "reading": problem == READING, **found})

        app.get(f"/{name}", dependencies=[viewer])(lambda: HTMLResponse(page()))
        app.get(f"/data/{name}", dependencies=[viewer])(values)

    def models_data(model: ReadModel, now: float) -> dict[str, Any]:
        registered, drifts = beside.registered(), beside.drifts()
        rows = model_rows(model, registered.value, drifts.value or {}, beside.mlflow, now)
        return {"rows": rows, "problem": problems(registered, drifts)}

    def topologies_data(model: ReadModel, now: float) -> dict[str, Any]:
        topologies, advice = beside.topologies(), beside.advice()
        rows = topology_rows(model, topologies.value or (), advice.value or {}, now)
        return {"rows": rows, "problem": problems(topologies, advice)}

    listed("pools", pools_page, lambda model, now: {"rows": pool_rows(model, now)})
    listed("backfills", backfills_page, lambda model, now: {"rows": backfill_rows(model, now)})
    listed("models", models_page, models_data)
    listed("topologies", topologies_page, topologies_data)


@lru_cache
def _file(name: str) -> tuple[bytes, str]:
    """A file's content and its ETag."""
    package, folder, _ = STATIC[name]
    content = (files(package) / folder / name).read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:16]}"'


def _up(request: Request) -> str:
    """The way from a page to the console's own address."""
    inside = request.url.path.removeprefix(str(request.scope.get("root_path", ""))).strip("/")
    return "../" * inside.count("/") or "./"
