"""A small chart of risk: how often the best attacker is right, against how often a blind guess is."""

from __future__ import annotations

from dpbayes.privacy.risk import Profile, Risk, percent, success
from dpbayes.report.canvas import Picture, line
from dpbayes.report.pictures import Frame

MARKS = (0.0, 0.25, 0.5, 0.75, 1.0)
POINTS = 100


def risk_picture(profile: Profile, title: str) -> Picture:
    """The chart; the dashed line is a release that tells nothing."""
    found = [(0.0, 0.0), *((at / POINTS, success(profile, at / POINTS)) for at in range(1, POINTS)), (1.0, 1.0)]
    frame = Frame(64, 30, 384, 350, (0.0, 1.0), (0.0, 1.0))
    shapes = frame.axes(MARKS, MARKS, "a blind guess is right", "the best attacker is right")
    shapes += [line("guess", frame.at(0, 0), frame.at(1, 1)), line("line", *(frame.at(x, y) for x, y in found))]
    half = percent(success(profile, 0.5))
    said = f"{title}: a guess about a person that is right half the time becomes right at most {half} of the time."
    return Picture(title=title, words=said, width=420, height=396, shapes=tuple(shapes), note=said)


def bars(risk: Risk, *, width: int = 40) -> list[str]:
    """The chart for a terminal: a bar for each guess, its dark part what a blind guess reaches.

    >>> from dpbayes import PureDP
    >>> print(bars(Risk.of(PureDP(epsilon=1.0), blind=(0.1, 0.5)), width=20)[1])
       50 % ██████████▒▒▒▒▒▒      at most 81.7 %
    """
    lines = []
    for blind, right in risk.guesses:
        full, reach = round(width * blind), round(width * right)
        bar = "█" * full + "▒" * (reach - full)
        lines.append(f"{percent(blind):>7} {bar:<{width}}  at most {percent(right)}")
    return lines
