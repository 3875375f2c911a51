"""Data sets by name: their arrays, from a memory-mapped cache, from files that are there, or from their publisher."""

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from feddyn.data.datasets.decode import Arrays, agreeing
from feddyn.data.datasets.files import download, find, home, take
from feddyn.data.datasets.published import ABOUT, LEAF_COUNTS, SHAKESPEARE, SOURCES, Form
from feddyn.data.datasets.shakespeare import Corpus, corpus
from feddyn.errors import InputError, nearest


def load(name: str, progress: Any = None) -> Arrays:
    """A data set from the cache, from files that are there, or from its publisher."""
    require_images(name)
    cached = home() / "decoded" / name
    if not cached.is_dir():
        paths, form = locate(name)
        if form is None:
            form = SOURCES[name].forms[0]
            folder = home() / form.folders[0]
            paths = [find(file, [folder]) or download(file, folder, progress) for file in form.files]
        arrays = _decode(form, paths)
        if not _keep(arrays, cached):
            return arrays
    try:
        return agreeing(Arrays(*(np.load(cached / f"{part}.npy", mmap_mode="c") for part in Arrays._fields)))
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"the decoded data in {cached} is damaged ({error}): remove that folder") from None


def load_shakespeare(progress: Any = None) -> Corpus:
    """Shakespeare's roles. No checksum is published; that the text is LEAF's shows in the counts that LEAF gives."""
    folders = [home() / folder for folder in ("shakespeare", "")]
    path = next((path for file in SHAKESPEARE if (path := find(file, folders))), None)
    path = path or download(SHAKESPEARE[0], folders[0], progress)
    try:
        raw = path.read_bytes()
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
                if not names:
                    raise ValueError("the archive is empty")
                raw = archive.read(names[0])
        found = corpus(raw.decode("utf-8-sig").replace("\r\n", "\n"))
        counts = (found.plays, len(found.roles), int(found.samples.sum()))
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, ValueError, RuntimeError) as error:
        raise InputError(f"{path} cannot be read ({error}): remove it and fetch it again") from None
    if counts != LEAF_COUNTS:
        raise InputError(
            f"{path} gives {counts} plays, roles and samples, not LEAF's {LEAF_COUNTS}: it is damaged or another "
            "edition; remove it and fetch it again"
        )
    return found


def fetch(name: str, progress: Any = None) -> None:
    """Make sure that a data set is there, whole and readable."""
    load_shakespeare(progress) if name == "shakespeare" else load(name, progress)


def state(name: str) -> str:
    """Whether a data set is there, in words."""
    try:
        if name == "shakespeare":
            here = any(find(file, [home() / "shakespeare", home()]) for file in SHAKESPEARE)
        else:
            here = (home() / "decoded" / name).is_dir() or locate(name)[1] is not None
    except InputError as error:
        return str(error)
    return "yes" if here else "no"


def check(name: str) -> str:
    """Verify and read the published files of a data set again."""
    if name == "shakespeare":
        load_shakespeare()
        return f"the text gives LEAF's {LEAF_COUNTS[0]} plays, {LEAF_COUNTS[1]} roles and {LEAF_COUNTS[2]} samples"
    require_images(name)
    paths, form = locate(name)
    if form is None:
        raise InputError(f"{name} is not here: `feddyn data fetch {name}` or `feddyn data import FOLDER`")
    arrays = _decode(form, paths)
    sums = "checksums right" if all(file.md5 for file in form.files) else "no checksums published, content read"
    return f"{len(paths)} files in {paths[0].parent}, {sums}, {len(arrays.y)} + {len(arrays.test_y)} samples"


def take_all(folder: Path) -> dict[str, int]:
    """Copy every published file below a folder into the data folder; how many of each data set. Files of a data set
    that is not whole with them are kept too: the others may come from another folder."""
    taken = {}
    for name, source in SOURCES.items():
        files = [path for form in source.forms for path in take(form.files, folder, home() / form.folders[0])]
        if files:
            taken[name] = len(files)
    if files := take(SHAKESPEARE, folder, home() / "shakespeare"):
        taken["shakespeare"] = len(files)
    return taken


def require_images(name: str) -> None:
    """Refuse what is no data set of images."""
    if name == "shakespeare":
        raise InputError(
            "shakespeare is no data set of images with classes to split by: its devices are the roles of the plays; in "
            'a setting, population.split is "natural" or "iid"'
        )
    if name not in SOURCES:
        raise InputError(f"the data set {name!r} is not known; {nearest(name, ABOUT)}")


def locate(name: str) -> tuple[list[Path], Form | None]:
    """The files of the first form that is there as a whole."""
    for form in SOURCES[name].forms:
        folders = [home() / folder for folder in form.folders]
        paths = [path for file in form.files if (path := find(file, folders))]
        if len(paths) == len(form.files):
            return paths, form
    return [], None


def _decode(form: Form, paths: Sequence[Path]) -> Arrays:
    try:
        return agreeing(form.decode(paths))
    except InputError:
        raise
    except Exception as error:  # a file that is not what it should be makes its decoder stumble in many ways
        raise InputError(
            f"{paths[0].parent} holds files that cannot be read ({error}): remove and fetch them again"
        ) from None


def _keep(arrays: Arrays, folder: Path) -> bool:
    """Put decoded arrays into the cache, whole or not at all; a folder that cannot be written to is done without."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError:
        return False
    try:
        for part, array in zip(Arrays._fields, arrays, strict=True):
            np.save(partial / f"{part}.npy", array)
        partial.rename(folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        if not folder.is_dir():  # and not: another process was faster
            raise InputError(f"the decoded data cannot be kept in {folder}: {error.strerror}") from None
    return True
