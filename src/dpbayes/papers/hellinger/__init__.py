"""The Hellinger mechanism of [H-full], [H-abstract] and [H-notes], under the names of the papers.

A table ``x`` is a list of counts, one per cell, and counts as public: nothing is charged. ``prior`` has one parameter
per cell, ``n`` is the number of records and ``m`` the number of cells. ``sensitivity`` is "smooth" (which needs δ),
"global" or "local". Formulas that products need live in ``dpbayes.hellinger``.
"""

from dpbayes.papers.hellinger.mechanism import *
from dpbayes.papers.hellinger.scores import *
