"""Names of one's own in a setting, "package.module:Name" or "file.py:Name", and the code that they stand for.

A setting is complete only with that code, so whoever resolves names is also told which source files it took.
"""

import hashlib
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeGuard, TypeVar

from feddyn.errors import InputError, nearest
from feddyn.origin import installed, told
from feddyn.settings.schema import choose

T = TypeVar("T")
FOLDER = "code"
"""Where records keep copies of the code, beside their setting.toml."""


def is_own(name: object) -> TypeGuard[str]:
    """Whether a name is that of code outside of feddyn."""
    return isinstance(name, str) and ":" in name


def portable(name: str) -> str:
    """A name without the path to its file, which another machine does not have.

    >>> portable("/home/me/mine.py:Method"), portable("package.module:Method")
    ('mine.py:Method', 'package.module:Method')
    """
    file, _, part = name.rpartition(":")
    return f"{Path(file).name}:{part}"


class Code:
    """The code that one setting names.

    Files are looked for in `folder`, that of the settings file, in its subfolder `code`, where records keep copies, and
    in the current folder; modules there and among what is installed. `files` has the source of all that was imported
    from outside of installed packages, exactly as it was run, by its name below `code`. The modules are this object's
    alone and are not found by anybody else, so code has to import what it needs at its top.
    """

    def __init__(self, folder: Path = Path()):
        self.folders = [folder.absolute(), folder.absolute() / FOLDER, Path.cwd()]
        self.files: dict[str, bytes] = {}
        self._paths: dict[str, str] = {}
        self._modules: dict[str, ModuleType] = {}

    def resolve(self, name: str, where: str, kinds: tuple[type, ...] = ()) -> Callable[..., Any]:
        """The class or function of a name, or an object of one of some kinds; `where` is the key that has it, for the
        sentence if there is none."""
        source, _, path = name.rpartition(":")
        if not source or not path:
            raise InputError(f'{where} {name!r} is no name: write "package.module:Name" or "file.py:Name"')
        found: Any = self._file(source, where) if source.endswith(".py") else self._module(source, where)
        for part in path.split("."):
            if not hasattr(found, part):
                raise InputError(f"{where}: {source} has no {part!r}; {nearest(part, _public(found, kinds))}")
            found = getattr(found, part)
        if not callable(found) and not isinstance(found, kinds):
            raise InputError(f"{where}: {name} is no class or function, but a {type(found).__name__}")
        return found  # type: ignore[no-any-return]

    def choose(
        self, known: Mapping[str, Callable[..., T]], table: Mapping[str, Any], key: str, where: str
    ) -> Callable[..., T]:
        """What a table's `key` names: something known, or code, of which nobody knows yet what it gives."""
        name = table.get(key)
        return self.resolve(name, f"{where}.{key}") if is_own(name) else choose(known, table, key, where)

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of every file."""
        return {name: hashlib.sha256(source).hexdigest() for name, source in sorted(self.files.items())}

    def require(self, recorded: Mapping[str, Any]) -> None:
        """Refuse code that is not what a setting's [code] table says. A file that another one began or ceased to
        import needs no check of its own: then that other one has changed."""
        for name, digest in self.hashes.items():
            if recorded.get(name, digest) != digest:
                raise InputError(
                    f"{self._paths[name]} has changed since the run was begun (its SHA-256 is not the one in the "
                    "setting's [code]): change it back, or start a run of its own from a setting without [code]"
                )

    def located(self, file: str) -> Path:
        """Where a file with data lies: as the setting says, seen from its folder or from the current one, or beside the
        setting."""
        given = Path(file).expanduser()
        here, _, current = self.folders
        places = [here / given, current / given, here / given.name]
        return next((place for place in places if place.exists()), places[0])

    def places(self) -> str:
        """Where files are looked for, in words."""
        here, _, current = self.folders
        return " or ".join(dict.fromkeys(map(str, (here, current))))

    def _file(self, source: str, where: str) -> ModuleType:
        given = Path(source).expanduser()
        here, kept, current = self.folders
        file = next((path for path in (here / given, kept / given.name, current / given) if path.is_file()), None)
        if file is None:
            raise InputError(f"{where}: there is no file {source} in {self.places()}")
        name = f"_feddyn_{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]}"
        if name in self._modules:
            return self._modules[name]
        spec = spec_from_file_location(name, file, loader=_Loader(name, str(file), file.name, self._note))
        assert spec is not None
        with self._importing(where, source, [file.parent, *self.folders]) as found:
            module = found[name] = sys.modules[name] = module_from_spec(spec)
            spec.loader.exec_module(module)  # type: ignore[union-attr]
        return module

    def _module(self, source: str, where: str) -> ModuleType:
        with self._importing(where, source, self.folders):
            try:
                return importlib.import_module(source)
            except ModuleNotFoundError as error:
                if not f"{source}.".startswith(f"{error.name}."):
                    raise
        places = ", ".join(dict.fromkeys(map(str, (self.folders[0], self.folders[2]))))
        raise InputError(f"{where}: there is no module {source} in {places} or among what is installed")

    @contextmanager
    def _importing(self, where: str, source: str, folders: Sequence[Path]) -> Iterator[dict[str, ModuleType]]:
        """Let modules of this object, and only here, be imported from some folders too."""
        finder = _Finder([str(folder) for folder in folders], self._note)
        sys.modules.update(self._modules)
        sys.meta_path.insert(0, finder)
        try:
            yield self._modules
        except InputError:
            raise
        except (Exception, SystemExit) as error:
            raise InputError(f"{where}: {source} cannot be imported: {told(error)}") from None
        finally:
            sys.meta_path.remove(finder)
            self._modules |= {name: sys.modules[name] for name in finder.found if name in sys.modules}
            for name in self._modules:
                sys.modules.pop(name, None)

    def _note(self, name: str, path: str, source: bytes) -> None:
        if self.files.setdefault(name, source) != source:
            raise InputError(f"{self._paths[name]} and {path} have one name in a record: rename one of them")
        self._paths.setdefault(name, path)


class _Loader(SourceFileLoader):
    """Runs a source file as it stands, without the bytecode of former times, and tells what it has run."""

    def __init__(self, module: str, path: str, name: str, note: Callable[[str, str, bytes], None]):
        super().__init__(module, path)
        self._name, self._note = name, note

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        self._note(self._name, self.path, source)
        return compile(source, self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    """Finds modules outside of installed packages, first in folders of its own."""

    def __init__(self, folders: Sequence[str], note: Callable[[str, str, bytes], None]):
        self.folders, self._note = folders, note
        self.found: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        root = name.partition(".")[0]
        if root in sys.stdlib_module_names or root == "feddyn":
            return None
        spec = PathFinder.find_spec(name, [*self.folders, *sys.path] if path is None else path)
        if spec is None:
            return None
        if spec.loader is not None:
            if not isinstance(spec.loader, SourceFileLoader) or installed(Path(spec.loader.path)):
                return None
            file = name.replace(".", "/") + ("/__init__.py" if spec.submodule_search_locations is not None else ".py")
            spec.loader = _Loader(name, spec.loader.path, file, self._note)
        self.found.add(name)
        return spec


def _public(module: object, kinds: tuple[type, ...]) -> list[str]:
    """Names of classes and functions, and of objects of some kinds, that could have been meant."""
    named = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return [name for name, value in named.items() if callable(value) or isinstance(value, kinds)]
