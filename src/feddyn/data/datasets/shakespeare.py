"""The complete works of Shakespeare as a next-character task, by the rules of LEAF.

A device is a speaking role of a play. Its lines are joined to one text, and every 80 characters of it are a sample,
whose target is the character that follows. The alphabet has 80 characters; what is not in it counts as the last one.
"""

import re
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from feddyn.errors import InputError

LENGTH = 80
ALPHABET = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"

MARK = "by William Shakespeare"
LAST_LINE = 124195
"""The line of the text, after its first, behind which the plays are over (the poems follow)."""
SPEAKER, CONTINUED = re.compile(r"  ([a-zA-Z][a-zA-Z ]*)\. (.*)"), re.compile(r"    (.*)")
# The Comedy of Errors is not indented, so that every line continues a speech but the stage directions in <>
ERRORS = "THE COMEDY OF ERRORS"
ERRORS_SPEAKER = re.compile(r"([a-zA-Z][a-zA-Z ]*)\. (.*)")


@dataclass(frozen=True)
class Corpus:
    """All roles with at least one sample: role k speaks codes[offsets[k]:offsets[k + 1]], numbers into the alphabet."""

    plays: int
    roles: tuple[str, ...]
    codes: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]

    @property
    def samples(self) -> npt.NDArray[np.int64]:
        """How many samples each role has."""
        return np.diff(self.offsets) - LENGTH


def corpus(text: str) -> Corpus:
    """Cut the text into plays and roles."""
    plays = _plays(text.split("\n")[1:])
    if not plays:
        raise InputError(
            "the Shakespeare text has no plays: it must be Project Gutenberg's complete works, as LEAF uses"
        )
    spoken: dict[str, list[str]] = defaultdict(list)
    for title, roles in plays:
        for role, lines in roles.items():
            if len(lines) > 2:
                spoken[re.sub(r"\W+", "_", f"{title}_{role}".replace(" ", "_"))] += lines
    texts = {role: re.sub("   *", " ", " ".join(lines) + " ") for role, lines in spoken.items()}
    texts = {role: words for role, words in texts.items() if len(words) > LENGTH}
    code = np.full(0x110000, len(ALPHABET) - 1, dtype=np.uint8)
    code[[ord(c) for c in ALPHABET]] = np.arange(len(ALPHABET))
    points = np.frombuffer("".join(texts.values()).encode("utf-32-le"), dtype=np.uint32)
    ends = np.cumsum([0, *(len(words) for words in texts.values())])
    return Corpus(len(plays), tuple(texts), code[points], ends)


def windows(
    codes: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """The samples that begin at some places of the codes, and their targets."""
    return np.lib.stride_tricks.sliding_window_view(codes, LENGTH)[starts], codes[starts + LENGTH]


def _plays(lines: list[str]) -> list[tuple[str, dict[str, list[str]]]]:
    """Every play with the lines of its roles; what comes before the first play is skipped."""
    marks = [i for i, line in enumerate(lines) if MARK in line]
    if len(marks) < 2:
        return []
    plays: list[tuple[str, dict[str, list[str]]]] = []
    roles: dict[str, list[str]] = {}
    role, unindented = "", False
    for i in range(max(0, marks[1] - 5), min(len(lines), LAST_LINE + 1)):
        line = lines[i]
        if MARK in line:
            above = [line.strip() for line in lines[max(0, i - 7) : max(0, i - 1)]]
            title = next((words for words in reversed(above) if words), "")
            role, roles, unindented = "", defaultdict(list), title == ERRORS
            plays.append((title, roles))
        elif speech := (ERRORS_SPEAKER if unindented else SPEAKER).match(line):
            role = speech.group(1).upper()
            if unindented and role.startswith("ACT "):
                role = ""
            else:
                roles[role].append(speech.group(2))
        elif role and unindented:
            if line.startswith("<"):
                role = ""
            else:
                roles[role].append(line)
        elif role and (more := CONTINUED.match(line)):
            roles[role].append(more.group(1))
    return [play for play in plays if len(play[1]) > 1]
