"""From the papers: what [RDP], [tCDP], [H-full], [H-abstract] and [H-notes] state, under their names and symbols.

``rdp``, ``tcdp`` and ``hellinger`` (the three documents on M_H) take plain arrays, which count as public. A result says
what is printed, what is exact, which of them holds and what is wrong in print. Which function or noun answers which
statement, and the errata, stand in one table:

>>> from dpbayes import papers
>>> len(papers.statements()), papers.errata("rdp")[0].row
(230, 'R1')
>>> print(papers.run("hellinger.R_post(10, 3)").exact)
66
"""

from dpbayes.papers.checked import run
from dpbayes.papers.result import Reproduction, Result, Statement, errata, figure, statements, table

__all__ = ["Reproduction", "Result", "Statement", "errata", "figure", "run", "statements", "table"]
