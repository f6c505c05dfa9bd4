"""What the review needs beyond the program itself: plots and forecasts, from the optional packages."""

from __future__ import annotations

from types import SimpleNamespace

from capwatch.errors import UsageError


def plotting() -> SimpleNamespace:
    """`Figure`, `FigureCanvasSVG`, `rc_context` and `dates` of matplotlib.

    Raises:
        UsageError: they are not installed.
    """
    try:
        from matplotlib import dates, rc_context  # noqa: PLC0415 - optional, and a second to import
        from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise _lacking(error) from None
    return SimpleNamespace(Figure=Figure, FigureCanvasSVG=FigureCanvasSVG, rc_context=rc_context, dates=dates)


def smoothing() -> SimpleNamespace:
    """`ETSModel` of statsmodels.

    Raises:
        UsageError: it is not installed.
    """
    try:
        from statsmodels.tsa.exponential_smoothing.ets import ETSModel  # noqa: PLC0415 - optional, seconds to import
    except ImportError as error:
        raise _lacking(error) from None
    return SimpleNamespace(ETSModel=ETSModel)


def _lacking(error: ImportError) -> UsageError:
    return UsageError(f"review needs {error.name}: pip install 'capwatch[review]'")
