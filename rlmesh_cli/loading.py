"""From what a route calls its policy to something that builds it."""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from rlmesh_adapters.baselines import BASELINES
from rlmesh_adapters.corners import corner_names
from rlmesh_adapters.errors import LoadError, describe_error, is_fault, nearest, user_place
from rlmesh_adapters.spaces import SpaceView

from .guests import append_folder, as_guest, run_file
from .sources import split_source

#: Looked for in this order in a policy file that is named without an attribute.
ENTRY_NAMES = ("make_policy", "Policy", "predict")

_MODULE = "module-level `predict`"
_MODULE_MEND = "define make_policy(**params) or a class Policy"


class PolicySource(msgspec.Struct, frozen=True):
    """A policy that can be built as often as it is needed.

    label: short name for the run's folder. file: the file it came from, None for modules and built-ins.
    build: takes the action space of one lane and returns a policy. renew: runs the file anew and returns its
        build, so that nothing that classes or modules keep is left; None where that cannot be done.
    """

    label: str
    file: Path | None
    build: Callable[[SpaceView], Any]
    renew: Callable[[], Callable[[SpaceView], Any]] | None = None


def load_policy(source: str, params: Mapping[str, Any]) -> PolicySource:
    """Find a policy by its name in a route.

    source: `policy.py`, `policy.py:Name`, `package.module`, `package.module:Name`, `random` or `zero`.
    params: arguments of its constructor.

    Raises LoadError with the place in the user's code: no such file, an error while it runs, nothing to find in
    it, parameters that are missing or unknown.
    """
    if source in BASELINES:
        append_folder(Path.cwd())  # where there is no policy file, environments are looked for here
        return PolicySource(source, None, partial(_build_baseline, source, dict(params)))
    target, attribute = split_source(source)
    if target.endswith(".py"):
        return _from_file(Path(target), attribute, dict(params))
    if os.path.exists(target) and (os.sep in target or target.startswith(".")):
        raise _no_policy_file(target)
    return _from_module(target, attribute, dict(params))


def prepare_worker(source: str) -> None:
    """Run a policy's file or module in a worker process, for the environments that it registers."""
    target, _ = split_source(source)
    if target.endswith(".py"):
        run_file(Path(target).resolve())
    elif target in BASELINES:
        append_folder(Path.cwd())
    else:
        _import(target)


def _build_baseline(name: str, params: dict[str, Any], action: SpaceView) -> Any:
    _refuse_params(params, f"the built-in policy `{name}`", where="policy.params", mend="drop --policy-arg")
    return BASELINES[name](action)


def _from_file(path: Path, attribute: str, params: dict[str, Any]) -> PolicySource:
    if not os.path.isfile(path):
        folder = path.parent if os.path.isdir(path.parent) else Path()
        near = nearest(path.name, [known.name for known in folder.glob("*.py")])
        mend = f"did you mean {' or '.join(near)}?" if near else "check the path"
        raise LoadError(f"no such policy file: {path}", where="policy", mend=mend)
    path = path.resolve()
    module = _run(path)
    entry = _find_entry(module, attribute, path.name)
    if entry is module:
        _refuse_params(params, _MODULE, where=path.name, mend=_MODULE_MEND)
        return PolicySource(path.stem, path, _ModuleBuilder(path, module))
    label = path.stem if not attribute else f"{path.stem}-{attribute}"
    where = f"{path.name}:{_name_of(entry)}"

    def renew() -> Callable[[SpaceView], Any]:
        return _builder(_find_entry(_run(path, again=True), attribute, path.name), params, where)

    return PolicySource(label, path, _builder(entry, params, where), renew)


def _from_module(target: str, attribute: str, params: dict[str, Any]) -> PolicySource:
    try:
        module = _import(target)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{target}.".startswith(f"{error.name}."):
            if os.path.exists(target):
                raise _no_policy_file(target) from error
            raise LoadError(
                f"`{target}` is neither a built-in policy, a .py file nor a module that can be imported",
                where="policy",
                mend="give a path such as policy.py, or one of " + ", ".join(BASELINES),
            ) from error
        raise _cannot_load(target, error) from error
    except BaseException as error:
        if not is_fault(error):
            raise
        raise _cannot_load(target, error) from error
    entry = _find_entry(module, attribute, target)
    file = Path(module.__file__) if module.__file__ else None
    label = target.rsplit(".", 1)[-1]
    if entry is module:
        _refuse_params(params, _MODULE, where=target, mend=_MODULE_MEND)
        return PolicySource(label, file, lambda action: module)
    return PolicySource(label, file, _builder(entry, params, f"{target}:{_name_of(entry)}"))


def _no_policy_file(target: str) -> LoadError:
    is_folder = os.path.isdir(target)
    return LoadError(
        f"{target} is {'a folder' if is_folder else 'no .py file'}",
        where="policy",
        mend="name a .py file in it, such as policy.py" if is_folder else "name a .py file, such as policy.py",
    )


def _import(name: str) -> ModuleType:
    append_folder(Path.cwd())
    with as_guest():
        return importlib.import_module(name)


def _run(path: Path, *, again: bool = False) -> ModuleType:
    try:
        return run_file(path, again=again)
    except SyntaxError as error:
        raise _cannot_parse(path, error) from error
    except BaseException as error:
        if not is_fault(error):
            raise
        raise _cannot_load(str(path), error) from error


def _cannot_parse(path: Path, error: SyntaxError) -> LoadError:
    if error.filename is not None and os.path.isfile(error.filename):
        where = f"{error.filename}:{error.lineno}"
    else:  # the whole file is no text, or the file had other text parsed
        own = _own_frame(error, str(path))
        where = f"{path}:{own.lineno} in {own.name}" if own is not None else str(path)
    line = (error.text or "").strip()
    mend = f"correct the line: {line}" if line else "write it as Python source in UTF-8"
    return LoadError(f"syntax error: {error.msg}", where=where, mend=mend)


def _cannot_load(name: str, error: BaseException) -> LoadError:
    mend = "run the file with python to see the whole traceback"
    if isinstance(error, ModuleNotFoundError):
        mend = f"install `{error.name}`, or run where it is installed"
    elif isinstance(error, ImportError) and "relative import" in str(error):
        file = Path(name).resolve()
        mend = f"it is part of a package: name it {file.parent.name}.{file.stem}, from the folder around that"
    elif isinstance(error, SystemExit):
        mend = 'put what the file does as a script under `if __name__ == "__main__":`'
    elif isinstance(error, OSError) and error.filename == name:
        return LoadError(f"{name} cannot be read: {error.strerror}", where=name, mend="see that it may be read")
    return LoadError(f"the policy cannot be loaded: {describe_error(error)}", where=_place(error, name), mend=mend)


def _place(error: BaseException, name: str) -> str:
    """Return file and line of the last frame in the file `name`, else of the last one that is the user's."""
    own = _own_frame(error, name)
    if own is not None:
        return f"{own.filename}:{own.lineno} in {own.name}"
    return user_place(error.__traceback__) or name


def _own_frame(error: BaseException, name: str) -> traceback.FrameSummary | None:
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame for frame in reversed(frames) if frame.filename == name), None)


def _find_entry(module: ModuleType, attribute: str, where: str) -> Any:
    if attribute:
        entry = getattr(module, attribute, None)
        if entry is None:
            near = nearest(attribute, _public_names(module))
            mend = f"did you mean {' or '.join(near)}?" if near else f"found: {_found(module)}"
            raise LoadError(f"no `{attribute}` in {where}", where=where, mend=mend)
        return entry
    for name in ENTRY_NAMES[:2]:
        if callable(getattr(module, name, None)):
            return getattr(module, name)
    if corner_names(module):
        return module
    candidates = [name for name in _public_names(module) if _looks_like_policy(getattr(module, name))]
    mend = (
        f"name it, as in {where}:{candidates[0]}"
        if candidates
        else "define a class `Policy` with a method `predict(obs)`"
    )
    raise LoadError(
        f"{where} has none of `make_policy(**params)`, class `Policy` or `predict(obs)`; found: {_found(module)}",
        where=where,
        mend=mend,
    )


def _public_names(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def _found(module: ModuleType) -> str:
    return ", ".join(f"`{name}`" for name in _public_names(module)) or "no class or function of its own"


def _looks_like_policy(value: object) -> bool:
    try:
        return bool(corner_names(value))
    except LoadError:  # an object whose attributes raise
        return False


def _name_of(entry: object) -> str:
    return getattr(entry, "__name__", type(entry).__name__)


class _ModuleBuilder:
    """Gives the module itself as the policy; a second instance is the file, run anew."""

    def __init__(self, path: Path, module: ModuleType) -> None:
        self._path, self._module, self._count = path, module, 0

    def __call__(self, action: SpaceView) -> Any:
        self._count += 1
        return self._module if self._count == 1 else _run(self._path, again=True)


def _builder(entry: Any, params: dict[str, Any], where: str) -> Callable[[SpaceView], Any]:
    """Return a function that builds the policy that `entry` is, or makes, or acts as."""
    if not callable(entry) or (_looks_like_policy(entry) and not inspect.isclass(entry)):
        mend = "name its class, or drop --policy-arg"
        _refuse_params(params, f"`{_name_of(entry)}`, an object that is there already,", where=where, mend=mend)
        return lambda action: entry
    is_factory = _name_of(entry) == ENTRY_NAMES[0]
    if inspect.isfunction(entry) and not is_factory and not params and _required(entry):
        # A function that wants an argument that nobody gives is not a factory: it acts.
        return lambda action: _FunctionPolicy(entry)
    _check_params(entry, params, where)

    def build(action: SpaceView) -> Any:
        try:
            with as_guest():
                # Instances keep nothing in common, and the record says what was given.
                return entry(**copy.deepcopy(params))
        except BaseException as error:
            if not is_fault(error):
                raise
            raise LoadError(
                f"{_name_of(entry)} cannot be built: {describe_error(error)}",
                where=_place(error, str(getattr(sys.modules.get(entry.__module__), "__file__", where))),
                mend="check its arguments; --policy-arg NAME=VALUE gives one",
            ) from error

    return build


class _FunctionPolicy:
    """A bare function `predict(obs)` as a policy."""

    def __init__(self, act: Callable[..., Any]) -> None:
        self.predict = act


def _required(entry: Any) -> list[str]:
    return [
        parameter.name
        for parameter in _parameters(entry)
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]


def _parameters(entry: Any) -> list[inspect.Parameter]:
    # Of a plain class without a constructor, Python reads the text of object's own: ten times as slow.
    if type(entry) is type and not any({"__init__", "__new__"} & vars(base).keys() for base in entry.__mro__[:-1]):
        return []
    try:
        return list(inspect.signature(entry).parameters.values())
    except (TypeError, ValueError):
        return []


def _refuse_params(params: Mapping[str, Any], what: str, *, where: str, mend: str) -> None:
    if params:
        raise LoadError(f"{what} takes no parameters, got {', '.join(params)}", where=where, mend=mend)


def _check_params(entry: Any, params: Mapping[str, Any], where: str) -> None:
    parameters = _parameters(entry)
    known = [parameter.name for parameter in parameters]
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    for name in params:
        if name not in known and not takes_any:
            near = nearest(name, known)
            mend = f"did you mean {' or '.join(near)}?" if near else f"it takes: {', '.join(known) or 'nothing'}"
            raise LoadError(f"{_name_of(entry)} takes no `{name}`", where=where, mend=mend)
    missing = [name for name in _required(entry) if name not in params]
    if missing:
        raise LoadError(
            f"{_name_of(entry)} needs {', '.join(f'`{name}`' for name in missing)}",
            where=where,
            mend="give " + " ".join(f"--policy-arg {name}=VALUE" for name in missing),
        )
