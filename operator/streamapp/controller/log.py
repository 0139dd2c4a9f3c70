"""The operator's log: one JSON object per line, and one line per change of a decision, not per pass.

Set up once by `process`; every other module calls `structlog.get_logger()`.
"""

import logging

import structlog

_FOREIGN = ("kopf", "aiohttp", "asyncio", "kubernetes")


def set_up(level: str) -> None:
    """Send our lines and those of the libraries to standard error, as JSON; ValueError for an unknown level."""
    levels = logging.getLevelNamesMapping()
    if level.upper() not in levels:
        raise ValueError(f"log level {level!r}: one of debug, info, warning, error")
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(levels[level.upper()]),
    )
    handler = logging.StreamHandler()
    renderer = structlog.processors.JSONRenderer()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(levels[level.upper()])
    for name in _FOREIGN:
        # kopf logs every event at INFO; our own lines have what matters.
        logging.getLogger(name).setLevel(max(levels[level.upper()], logging.WARNING))
