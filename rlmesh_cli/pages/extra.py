"""Extra: whether what writes pages is installed."""

from __future__ import annotations

from importlib.util import find_spec

from rlmesh_adapters.errors import HarnessError

#: File of a page inside a run's folder.
REPORT = "report.html"
_NEEDED = ("jinja2", "plotly")


def check_extra(flag: str) -> None:
    """Raise HarnessError where pages cannot be written; flag: what asks for one, for the message."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise HarnessError(
            f"reports are made with {' and '.join(_NEEDED)}; {' and '.join(missing)} {verb} not installed",
            where=flag,
            mend="install the extra: pip install 'rlmesh-cli[report]'",
        )
