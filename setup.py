"""What pyproject.toml cannot say: the text for a package index, which has none of the files that README.md links to."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def description(readme: str, home: str | None) -> str:
    """README.md with links to the repository's home; as long as it has none, without what only points to its files."""
    if home is None:
        readme = readme.split("\n## All pages\n")[0]
        readme = "\n\n".join(part for part in readme.split("\n\n") if not part.startswith("["))
    whole = r"\1" if home is None else rf"[\1]({home}/blob/v{PROJECT['version']}/\2)"
    return re.sub(r"\[([^]]+)\]\(((?!https?://)[^)\s]+)\)", whole, readme)


setup(
    long_description=description(
        (HERE / "README.md").read_text(encoding="utf-8"), PROJECT.get("urls", {}).get("Repository")
    ),
    long_description_content_type="text/markdown",
)
