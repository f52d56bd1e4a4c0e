"""[tCDP], *Differential Privacy of Dirichlet Posterior Sampling*: its statements, as it names them.

>>> from dpbayes.papers import tcdp
>>> tcdp.alpha_for(rho=0.1, gamma=2).holds  # doctest: +ELLIPSIS
12.49168...
"""

from dpbayes.papers.tcdp.privacy import *
from dpbayes.papers.tcdp.utility import *
