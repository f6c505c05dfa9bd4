"""What the review needs beyond the program itself: plots and forecasts, from the optional packages."""

from __future__ import annotations

from types import SimpleNamespace

from capwatch.errors import UsageError


def plotting() -> SimpleNamespace:
    """`Figure`, `FigureCanvasSVG` and `rc_context` of matplotlib.

    Raises:
        UsageError: they are not installed.
    """
    try:
        from matplotlib import rc_context  # noqa: PLC0415 - optional, and a second to import
        from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise _lacking(error) from None
    return SimpleNamespace(Figure=Figure, FigureCanvasSVG=FigureCanvasSVG, rc_context=rc_context)


def smoothing() -> SimpleNamespace:
    """`ETSModel` and `STLForecast` of statsmodels.

    Raises:
        UsageError: it is not installed.
    """
    try:
        from statsmodels.tsa.exponential_smoothing.ets import ETSModel  # noqa: PLC0415 - optional, seconds to import
        from statsmodels.tsa.forecasting.stl import STLForecast  # noqa: PLC0415
    except ImportError as error:
        raise _lacking(error) from None
    return SimpleNamespace(ETSModel=ETSModel, STLForecast=STLForecast)


def _lacking(error: ImportError) -> UsageError:
    return UsageError(f"review needs {error.name}: pip install 'capwatch[review]'")
