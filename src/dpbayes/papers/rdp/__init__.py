"""[RDP], *Dirichlet Mechanism for Differentially Private KL Divergence Minimization*: its statements, as it names them.

>>> from dpbayes.papers import rdp
>>> rdp.theorem_1(r=0.5, order=5)
[RDP] Theorem 1: printed 0.191931, exact 0.144329, r 0.5, alpha 9...
"""

from dpbayes.papers import related as related
from dpbayes.papers.rdp.definitions import *
from dpbayes.papers.rdp.theorems import *
