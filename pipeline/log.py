"""structlog's configuration, and the standard library's logging behind it.

Everything is written to standard error: lines for people on a terminal, else one JSON object a
line. What libraries log takes the same way, so that one place masks secrets.
"""

import logging
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from pipeline.safe_text import Masker, clean
from pipeline.settings import LogSettings

QUIET_LIBRARIES = ("httpx", "httpcore", "openai", "anthropic", "sqlalchemy", "urllib3")
"""Below warning these log headers, bodies and statement parameters: keys and people's questions."""

_LEVELS_OF_VERBOSITY = {1: logging.INFO, 2: logging.DEBUG}


def configure(log: LogSettings, *, secrets: Iterable[str] = (), verbosity: int = 0) -> None:
    """Configure logging of this process; calling it again replaces what it did before.

    `secrets` (`LoadedSettings.secret_values()`) are masked in every line, as are passwords in URLs.
    `verbosity` counts the -v of a command: 1 asks for info, 2 for debug, whatever the settings say.
    """
    level = _level(log, verbosity)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            *_shared(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = _StandardError()
    handler.setFormatter(_formatter(console=_is_console(log), secrets=secrets))
    root = logging.getLogger()
    root.handlers = [h for h in root.handlers if not isinstance(h, _StandardError)] + [handler]
    root.setLevel(level)
    for name in QUIET_LIBRARIES:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    # At the end of a pipeline it warns of what it has raised already.
    logging.getLogger("psycopg").setLevel(max(level, logging.ERROR))


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to what standard error is at the time: a progress bar and tests replace it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # a constant in the base class
        return sys.stderr


def _level(log: LogSettings, verbosity: int) -> int:
    wanted = logging.getLevelNamesMapping()[log.level.upper()]
    return min(wanted, _LEVELS_OF_VERBOSITY.get(min(verbosity, 2), wanted))


def _is_console(log: LogSettings) -> bool:
    return sys.stderr.isatty() if log.format == "auto" else log.format == "console"


def _shared() -> list[Processor]:
    return [
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _formatter(*, console: bool, secrets: Iterable[str]) -> logging.Formatter:
    masker = Masker(secrets)

    def mask(_logger: WrappedLogger, _method: str, rendered: Any) -> str:  # noqa: ANN401 - the text
        return masker(rendered)

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_shared(),
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            _clean_values,
            *([_one_line, *_console_renderer()] if console else [_JSON]),
            mask,
        ],
    )


def _console_renderer() -> list[Processor]:
    # The traceback is text already: structlog's own prints the local variables, secrets and all.
    colors = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    return [structlog.dev.ConsoleRenderer(colors=colors)]


_JSON = structlog.processors.JSONRenderer()

_OF_SEVERAL_LINES = frozenset({"exception", "stack"})


def _one_line(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Keep a stranger's text from looking like another event; JSON escapes line feeds by itself."""
    return {
        name: " ".join(value.splitlines())
        if isinstance(value, str) and name not in _OF_SEVERAL_LINES
        else value
        for name, value in event.items()
    }


def _clean_values(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {k: clean(v) if isinstance(v, str) else v for k, v in event.items()}
