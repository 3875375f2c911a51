"""Settings files as documents: read from TOML, cut into one document for each method, and changed by --set."""

import copy
import difflib
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from feddyn.algorithms import Algorithm
from feddyn.data.columns import sha256
from feddyn.engine.links import Links
from feddyn.errors import InputError, nearest
from feddyn.metrics import Evaluation, Patience, Target
from feddyn.settings.code import Code, is_own
from feddyn.settings.names import ALGORITHMS, COMPRESSORS, METHODS, MODELS, SOLVERS, SOURCES, Method, label
from feddyn.settings.schema import choose, parameters

Document: TypeAlias = dict[str, Any]

WIRES = ("uplink", "downlink")
NESTED = {("solver", "schedule"), *((wire, "values") for wire in WIRES)}
"""Tables in tables, whose keys may be set one by one."""
TABLES = ("model", "population", "algorithm", "solver", "evaluation", "target", "links", "patience", *WIRES, "code")
SCALARS = ("seed", "rounds", "participation", "stack", "cohort", "loss", "device")
"""`cohort` is what `stack` was called before."""
PLAIN: Mapping[str, Callable[..., Any]] = {
    "evaluation": Evaluation,
    "target": Target,
    "links": Links,
    "patience": Patience,
}
"""Tables that name nothing, and what they make."""
NAMES = {"algorithm.name", "solver.name", "model.name", "population.source"}
NAMES |= {"uplink.name", "downlink.name", "target.gap", "model.dtype", "population.pooled"}
EXCLUSIVE = (("steps", "epochs"), ("epochs", "steps"))
ENTRY = {"label", "algorithm", "solver", *WIRES}
OWN = Method(Algorithm, "", "code of one's own: nothing comes with it")


def read(path: Path) -> Document:
    """A settings file as it stands."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no settings file {path}") from None
    except IsADirectoryError:
        inside = path / "setting.toml"
        hint = f"did you mean {inside}?" if inside.is_file() else "name a file in it"
        raise InputError(f"the settings file {path} cannot be read: it is a folder; {hint}") from None
    except OSError as error:
        raise InputError(f"the settings file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"the settings file {path} is not text in UTF-8") from None
    except (ValueError, RecursionError) as error:  # besides TOML's own: numbers of too many digits, tables in tables
        raise InputError(f"the settings file {path} is not valid TOML: {error}") from None


def anchored(document: Document, folder: Path) -> Document:
    """The same, with a table of one's own named by its absolute path and its hash: then it is the same data wherever
    the setting is copied to."""
    population = document.get("population")
    if not isinstance(population, dict) or population.get("source") != "table" or "file" not in population:
        return document
    file = Code(folder).located(str(population["file"]))
    return {**document, "population": {"sha256": sha256(file), **population, "file": str(file)}}


def expand(document: Document) -> list[tuple[str, Document]]:
    """One document for each method of the comparison, with the common solver filled in."""
    if needs := document.get("needs"):
        raise InputError(
            f"the setting needs what exists only in memory ({', '.join(needs) if isinstance(needs, list) else needs}): "
            "make it again in Python and call feddyn.simulate"
        )
    if "deployment" in document:
        raise InputError("this is the setting of a deployment, which goes on at its server: sh server/run.sh")
    if "sweep" in document:
        raise InputError("the setting has a [sweep] table: run it with feddyn sweep")
    for key, value in document.items():
        if key not in (*TABLES, *SCALARS, "compare"):
            raise InputError(f"{key} is not known in a setting; {nearest(key, (*TABLES, *SCALARS, 'compare'))}")
        if key in TABLES and not isinstance(value, dict):
            raise InputError(f"{key} must be a table, not {value!r}")
    common = {key: value for key, value in copy.deepcopy(document).items() if key != "compare"}
    if "compare" not in document and "algorithm" not in document:
        raise InputError("the setting has no method: write an [algorithm] table with a name, or [[compare]] entries")
    if "compare" not in document:
        return [_resolve(common, {}, "algorithm")]
    if "algorithm" in document:
        raise InputError("a setting has either an [algorithm] or [[compare]] entries, not both")
    entries = document["compare"]
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InputError("compare must be a list of tables: write [[compare]] above each method")
    singles = []
    for number, entry in enumerate(copy.deepcopy(entries), 1):
        if unknown := set(entry) - ENTRY:
            key = min(unknown)
            raise InputError(f"compare entry {number}: {key} is not known; {nearest(key, ENTRY)}")
        singles.append(_resolve(common, entry, f"compare entry {number}: algorithm"))
    slugs = [slug(name) for name, _ in singles]
    for name, short in zip((name for name, _ in singles), slugs, strict=True):
        if not short:
            raise InputError(f"compare: the label {name!r} has neither a letter nor a digit")
        if slugs.count(short) > 1:
            raise InputError(f"compare: two methods have the name {name!r} or nearly so; give each a label of its own")
    return singles


def slug(label: str) -> str:
    """A label as the name of a directory.

    >>> slug("FedProx, mu = 0.1")
    'fedprox-mu-0.1'
    """
    return re.sub(r"[^a-z0-9.]+", "-", label.lower()).strip("-.")


def _resolve(common: Document, entry: Document, where: str) -> tuple[str, Document]:
    """A method's own document: its algorithm, and its solver on top of the common one."""
    algorithm = entry.get("algorithm", common.get("algorithm", {}))
    if not isinstance(algorithm, dict) or not isinstance(entry.get("solver", {}), dict):
        raise InputError(f'{where} and solver must be tables, as in algorithm = {{ name = "feddyn", alpha = 0.1 }}')
    method = OWN if is_own(algorithm.get("name")) else choose(METHODS, algorithm, "name", where)
    shared, own = dict(common.get("solver", {})), dict(entry.get("solver", {}))
    if method.solver is not None and shared.get("name", "sgd") != method.solver:
        shared = {"name": method.solver, **{key: shared[key] for key in method.inherits if key in shared}}
    if own.get("name", shared.get("name")) != shared.get("name"):
        shared = {}
    for one, other in EXCLUSIVE:
        if one in own:
            shared.pop(other, None)
    single = {**copy.deepcopy(common), "algorithm": dict(algorithm), "solver": {"name": "sgd", **shared, **own}}
    for kind in WIRES:
        if not isinstance(table := entry.get(kind, {}), dict):
            raise InputError(f'{kind} must be a table, as in {{ name = "quantized", bits = 4 }}, not {table!r}')
        single |= {kind: table} if table else {}
    if method.pooled:
        single["population"] = {**single.get("population", {}), "pooled": True}
        single["participation"] = 1.0
    name = entry.get("label", label(algorithm["name"], algorithm))
    if not isinstance(name, str):
        raise InputError(f"compare: a label must be a text, not {name!r}")
    return name, single


def change(singles: Sequence[Document], words: str, folder: Path = Path()) -> None:
    """Apply KEY=VALUE to every document that has the key; none has it: an error. Code is looked for in `folder`."""
    path, equals, text = words.partition("=")
    parts = path.strip().split(".")
    nested = len(parts) == 3 and tuple(parts[:2]) in NESTED
    if not equals or (len(parts) > 2 and not nested) or not all(parts):
        raise InputError(f"--set {words}: write KEY=VALUE, as in --set solver.lr=0.05")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        value = text
    known: set[str] = set()
    changed = False
    for single in singles:
        mine = keys(single, Code(folder))
        known |= mine
        if ".".join(parts[:2]) in mine:
            target = single if len(parts) == 1 else single.setdefault(parts[0], {})
            if nested:
                target = target.setdefault(parts[1], {})
            if value == "none" and parts[0] in WIRES:
                target.clear()  # nothing of what is switched off stays
            target[parts[-1]] = value
            if path.strip() == "algorithm.name":  # a method may have a solver or a population of its own
                single |= _resolve(single, {}, "algorithm")[1]
            changed = True
    if not changed and any(".".join(parts) == f"solver.{one}" for one, _ in EXCLUSIVE):
        raise InputError(
            f"--set {words}: these methods go by {dict(EXCLUSIVE)[parts[1]]}; set that, or change the file"
        )
    if not changed:
        who, key = "method" if parts[0] in ("algorithm", "solver") else "setting", ".".join(parts)
        raise InputError(f"--set {words}: no {who} here has {key}; {suggestion(key, known)}")


def suggestion(key: str, known: Collection[str]) -> str:
    """The tail of an error sentence about a key: the known one of that name in some table, else one like it in its own
    table, or all of that table.

    >>> suggestion("lr", ["rounds", "solver.lr"]), suggestion("algorithm.mu", ["algorithm.name", "algorithm.alpha"])
    ("did you mean 'solver.lr'?", 'known: algorithm.alpha, algorithm.name')
    """
    table, _, name = key.rpartition(".")
    if found := called(name, known):
        return f"did you mean {' or '.join(map(repr, found))}?"
    if mine := {other.rpartition(".")[2]: other for other in known if table and other.startswith(f"{table}.")}:
        close = difflib.get_close_matches(name, mine, n=1)
        return f"did you mean {mine[close[0]]!r}?" if close else f"known: {', '.join(sorted(mine.values()))}"
    return nearest(key, known)


def called(name: str, known: Collection[str]) -> list[str]:
    """The key of a name, or else those of that name in tables."""
    return [name] if name in known else sorted(key for key in known if key.rpartition(".")[2] == name)


def every_key() -> set[str]:
    """Every key that some setting may have, of names that feddyn knows."""
    kinds = {"algorithm": ALGORITHMS, "solver": SOLVERS, "population": SOURCES, "model": MODELS}
    made = [(table, make) for table, known in kinds.items() for make in known.values()]
    made += [(kind, make) for kind in WIRES for make in COMPRESSORS.values()] + list(PLAIN.items())
    return {f"{table}.{key}" for table, make in made for key in parameters(make)} | NAMES | set(SCALARS)


def keys(single: Document, code: Code) -> set[str]:
    """Every key that a single document may have, dotted."""
    made: dict[str, Callable[..., Any]] = {
        "algorithm": code.choose(ALGORITHMS, single["algorithm"], "name", "algorithm"),
        "solver": code.choose(SOLVERS, single["solver"], "name", "solver"),
        "population": code.choose(SOURCES, single.get("population", {}), "source", "population"),
        "model": code.choose(MODELS, single.get("model", {}), "name", "model"),
        **PLAIN,
    }
    for kind in WIRES:
        if single.get(kind, {}).get("name", "none") != "none":
            made[kind] = code.choose(COMPRESSORS, single[kind], "name", kind)
    keys = {f"{table}.{key}" for table, make in made.items() for key in parameters(make)}
    keys -= {f"solver.{other}" for one, other in EXCLUSIVE if one in single["solver"]}
    return keys | NAMES | set(SCALARS)
