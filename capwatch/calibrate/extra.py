"""What the calibration needs beyond the program itself: regressions, from the optional packages."""

from __future__ import annotations

from types import SimpleNamespace

from capwatch.errors import UsageError


def regression() -> SimpleNamespace:
    """`WLS`, `RLM` and `QuantReg` of statsmodels.

    Raises:
        UsageError: they are not installed.
    """
    try:
        from statsmodels.regression.linear_model import WLS  # noqa: PLC0415 - optional, and a second to import
        from statsmodels.regression.quantile_regression import QuantReg  # noqa: PLC0415
        from statsmodels.robust.robust_linear_model import RLM  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(f"calibrate needs {error.name}: pip install 'capwatch[review]'") from None
    return SimpleNamespace(WLS=WLS, RLM=RLM, QuantReg=QuantReg)
