"""Load the owner's own Python, and say in one line what is wrong with it."""

import importlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import PermanentError
from pipeline.retrieval.own_host import PythonHost
from pipeline.retrieval.strategies.python import OwnCode
from pipeline.safe_text import clean

_LONGEST_QUOTE = 300
_OURS = ("cli", "db", "pipeline", "workers")
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class OwnFunction:
    """A function of the owner's, and which of the arguments on offer it takes."""

    call: Callable[..., Any]
    takes: frozenset[str]
    is_async: bool


def load(
    code: OwnCode, host: PythonHost, method: str, offered: Sequence[frozenset[str]]
) -> OwnFunction:
    """Import what `code` names: a function, or a class, made with its settings, with a `method`.

    The host's folder is looked in after everything else, so that nothing in it hides a module of
    ours. An object is made once for the same settings, and kept in the host. `offered` are the
    arguments that it may take, by name, in one set of several; `**anything` takes all of the set
    that its others are of. Raises PermanentError, in one line, where it cannot be imported, made or
    called.
    """
    found = _imported(code.path, host.folder)
    if inspect.isclass(found):
        found = _method(_made(found, code, host.made), code.path, method)
    elif code.settings:
        raise PermanentError(f"{code.path} is no class: only a class takes settings")
    if not callable(found):
        raise PermanentError(f"{code.path} is neither a class nor a function")
    return OwnFunction(found, _taken(found, code.path, offered), _is_async(found))


def in_words(error: BaseException) -> str:
    """Return an error of the owner's code in one line: its class and message."""
    said = " ".join(clean(str(error)).split())
    line = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return line if len(line) <= _LONGEST_QUOTE else line[:_LONGEST_QUOTE] + "..."


def _imported(path: str, folder: Path | None) -> Any:  # noqa: ANN401 - anything of the owner's
    module, _, name = path.partition(":")
    if folder is not None and str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        found = importlib.import_module(module)
        for step in name.split("."):
            found = getattr(found, step)
    except Exception as error:
        raise PermanentError(
            f"{path} cannot be imported ({in_words(error)}): it is looked for in"
            f" {folder or 'the current folder'} (python_folder) and on PYTHONPATH{_hint(module)}"
        ) from error
    return found


def _hint(module: str) -> str:
    package = module.partition(".")[0]
    return f"; {package} is recallwatch's own: name yours otherwise" if package in _OURS else ""


def _made(found: Callable[..., Any], code: OwnCode, made: MutableMapping[str, Any]) -> Any:  # noqa: ANN401 - the owner's object
    name = json.dumps([code.path, code.settings], sort_keys=True, default=str)
    if name not in made:
        try:
            made[name] = found(**code.settings)
        except Exception as error:
            raise PermanentError(f"{code.path} cannot be made ({in_words(error)})") from error
    return made[name]


def _method(made: object, path: str, method: str) -> Any:  # noqa: ANN401 - the owner's
    if (own := getattr(made, method, None)) is not None:
        return own
    if callable(made):
        return made
    raise PermanentError(f"{path} has no method {method}, and cannot be called itself")


def _is_async(found: Callable[..., Any]) -> bool:
    called = getattr(found, "__call__", None)  # noqa: B004 - whether that is a coroutine function
    return inspect.iscoroutinefunction(found) or inspect.iscoroutinefunction(called)


def _taken(
    found: Callable[..., Any], path: str, offered: Sequence[frozenset[str]]
) -> frozenset[str]:
    """Return the arguments that a function takes; raises PermanentError for one it cannot get."""
    try:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(found).parameters
    except (TypeError, ValueError):
        return offered[0]
    best = max(offered, key=lambda names: len(names & parameters.keys()))
    for name, each in parameters.items():
        needed = each.default is each.empty and each.kind not in _ANY_NUMBER
        if each.kind is each.POSITIONAL_ONLY or (needed and name not in best):
            raise PermanentError(
                f"{path} takes {name}, which there is not; it may take by name:"
                f" {'; or '.join(', '.join(sorted(names)) for names in offered)}"
            )
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    return best if takes_all else best & parameters.keys()
