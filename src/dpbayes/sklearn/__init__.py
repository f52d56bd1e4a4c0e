"""Private estimators for scikit-learn pipelines (extra ``sklearn``)."""

from dpbayes.base.errors import MissingExtra

try:
    import sklearn  # noqa: F401 - only to say what to install
except ImportError:
    raise MissingExtra("dpbayes.sklearn: scikit-learn is not installed; install dpbayes[sklearn].") from None

from dpbayes.sklearn.declared import STANDARDISED, AssumedPublic
from dpbayes.sklearn.estimator import ONE_ROW, PrivateCategoricalNB
from dpbayes.sklearn.session import SecondRelease, forget

__all__ = ["ONE_ROW", "STANDARDISED", "AssumedPublic", "PrivateCategoricalNB", "SecondRelease", "forget"]
