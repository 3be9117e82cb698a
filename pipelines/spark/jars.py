"""The jars of the broker, the Kafka connector and Delta: resolved once by Spark's own Ivy, local paths afterwards.

`python -m pipelines.spark.jars` resolves them into the repository's own `var/` (also when `var` is set to another
folder, so that they are fetched once); everybody else asks `jar_paths(group)`. Resolution runs in a process of its own
because a JVM gateway that was used for it must not be reused for a SparkSession.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Literal

from configs.errors import CorrectableError
from configs.settings import ROOT
from pipelines.spark import java
from pipelines.spark.own_pyspark import use_own_pyspark

Group = Literal["broker", "connector", "delta"]

_TOKEN = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"
# Groups are class paths of their own: broker and connector hold different versions of kafka-clients, lz4 and slf4j.
# The connector is 4.2.0 beside PySpark 4.2.1, as 4.2.1 of it and of the token provider is not on Maven Central (last
# asked on 2026-11-29). The token provider of 4.2.0 was missing there, too, and is there by now; 4.0.0 works, and has to
# be resolved apart from what excludes it.
COORDINATES: dict[str, list[str]] = {
    "broker": ["ivy://org.apache.kafka:kafka_2.13:4.3.1?transitive=true"],
    "connector": [
        f"ivy://org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0?transitive=true&exclude={_TOKEN}",
        f"ivy://{_TOKEN}:4.0.0?transitive=false",
    ],
    "delta": [
        "ivy://io.delta:delta-spark_4.2_2.13:4.4.0?transitive=false",
        "ivy://io.delta:delta-storage:4.4.0?transitive=false",
    ],
}
LIST = ROOT / "var" / "jars.json"
_IVY = ROOT / "var" / "ivy"
_LOG = ROOT / "var" / "log" / "jars.log"
_REMEDY = "Run `make setup`, which resolves them once."
_ELSEWHERE = (
    "Where Maven Central cannot be reached directly, give `make setup` a proxy, "
    "SPARK_SUBMIT_OPTS='-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT', or a mirror by a file of Ivy's settings, "
    "PYSPARK_SUBMIT_ARGS='--conf spark.jars.ivySettings=FILE pyspark-shell'. If Java does not know a certificate of "
    "yours, add -Djavax.net.ssl.trustStore=FILE to SPARK_SUBMIT_OPTS."
)


class JarsError(CorrectableError, RuntimeError):
    """Jars are missing or cannot be resolved; the message names the remedy."""


def jar_paths(group: Group) -> list[str]:
    """Return the absolute paths of one group's jars, "broker", "connector" or "delta", as `resolve_jars` listed them.

    Raises:
        JarsError: no list `var/jars.json`, or a broken one or one of other versions; or a listed file is gone.
        OSError: the list cannot be read.
    """
    if not LIST.is_file():
        raise JarsError(
            f"{LIST} does not exist: the jars of Kafka, its Spark connector and Delta are missing. {_REMEDY}"
        )
    try:
        entry = json.loads(LIST.read_text())[group]
        coordinates, found = entry["coordinates"], [ROOT / path for path in entry["jars"]]
    except (ValueError, LookupError, TypeError):
        raise JarsError(f"{LIST} does not list the {group} jars: it was not written to its end. {_REMEDY}") from None
    if coordinates != COORDINATES[group]:
        raise JarsError(f"{LIST} holds other versions of the {group} jars than this checkout needs. {_REMEDY}")
    for path in found:
        if not path.is_file():
            raise JarsError(f"{path} does not exist, though {LIST} lists it for {group}. {_REMEDY}")
    return [str(path) for path in found]


def describe_missing() -> str | None:
    """Return in words the first group whose jars are missing or outdated, and the remedy; None where all are there."""
    try:
        for group in COORDINATES:
            jar_paths(group)  # type: ignore[arg-type]
    except JarsError as error:
        return str(error)
    return None


def resolve_jars() -> dict[str, Any]:
    """Download the jars of every group into `var/ivy` with Spark's Ivy and write their list, `var/jars.json`.

    Takes about 20 s where `var/ivy` is empty. Starts a JVM and stops it; sets JAVA_HOME, SPARK_HOME, SPARK_LOCAL_IP and
    PYSPARK_PYTHON of this process; overwrites `var/log/jars.log`. `var` is the checkout's, whatever the settings say.

    Returns:
        By group ("broker", "connector", "delta"), `coordinates` (Ivy URIs) and `jars` (paths, relative to the checkout
        where they lie in it).

    Raises:
        JarsError: Ivy failed, e.g. without a network; the message has the last 15 lines of the log and the remedy.
        JavaError: no usable Java.
        OSError: the list or the log cannot be written.
    """
    from pyspark.java_gateway import launch_gateway

    use_own_pyspark()
    os.environ["JAVA_HOME"] = str(java.find_java().home)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # else its own name is looked up, which fails while an image is built
    _LOG.parent.mkdir(parents=True, exist_ok=True)
    with _LOG.open("w") as log:
        gateway = None
        try:
            gateway = launch_gateway(popen_kwargs={"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
            listed = {group: resolve_group(gateway.jvm, uris) for group, uris in COORDINATES.items()}
        except Exception as error:
            last = "\n  ".join(_LOG.read_text(errors="replace").splitlines()[-15:])
            raise JarsError(
                f"cannot resolve the jars: {str(error)[:300]}\nLast lines of {_LOG}:\n  {last}\n{_ELSEWHERE}"
            ) from None
        finally:
            if gateway is not None:
                gateway.shutdown()
    written = LIST.with_suffix(".new")
    written.write_text(json.dumps(listed, indent=1))
    written.replace(LIST)
    return listed


def resolve_group(jvm: Any, uris: list[str]) -> dict[str, Any]:
    """Download one group's jars into `var/ivy`; returns `coordinates` and `jars` as `resolve_jars` has them.

    Args:
        jvm: of a gateway that makes no session afterwards.
        uris: Ivy URIs, `ivy://group:artifact:version?transitive=false`.

    Raises:
        py4j.protocol.Py4JJavaError: Ivy failed.
    """
    jvm.java.lang.System.setProperty("spark.jars.ivy", str(_IVY))
    found: list[str] = []
    for uri in uris:
        seq = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(jvm.java.net.URI(uri))
        found += [_relative(seq.apply(i)) for i in range(seq.size())]
    return {"coordinates": uris, "jars": found}


def _relative(path: str) -> str:
    """Relative to the checkout, so that it can be moved."""
    absolute = Path(path.removeprefix("file:"))
    return str(absolute.relative_to(ROOT)) if absolute.is_relative_to(ROOT) else str(absolute)


def main() -> int:
    """Resolve the jars unless all are there; returns the exit status: 1 where Ivy or Java fails, the error on stderr.

    Raises:
        OSError: the list or the log cannot be written.
    """
    if describe_missing() is None:
        LIST.touch()  # make compares its age with this file's
        return 0
    try:
        listed = resolve_jars()
    except (JarsError, java.JavaError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{sum(len(entry['jars']) for entry in listed.values())} jars in {_IVY}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
