"""A small chart of risk: how often the best attacker is right, against how often a blind guess is."""

from __future__ import annotations

from pathlib import Path

from dpbayes.domain.markup import Html, joined, tag
from dpbayes.errors import InvalidArgument
from dpbayes.privacy.risk import Profile, Risk, success

WIDTH, HEIGHT = 380, 400
LEFT, TOP, SIDE = 56, 36, 290
"""Where the square of the chart begins, and how large it is."""

TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
POINTS = 100


def chart(profile: Profile, title: str) -> str:
    """The chart as an SVG text; the straight line is a release that tells nothing."""
    found = [(0.0, 0.0), *((at / POINTS, success(profile, at / POINTS)) for at in range(1, POINTS)), (1.0, 1.0)]
    curve = " ".join(f"{_x(blind):.1f},{_y(right):.1f}" for blind, right in found)
    ruled = joined(_tick(share) for share in TICKS)
    height = TOP + SIDE / 2
    drawn = joined(
        [
            tag("title", f"{title}: how often a guess about a person is right"),
            tag("rect", width=WIDTH, height=HEIGHT, fill="white"),
            tag("text", title, x=LEFT, y=20, font_size=13, font_weight="bold"),
            ruled,
            _line(f"{_x(0)},{_y(0)} {_x(1)},{_y(1)}", "#888", 1, stroke_dasharray="4 4"),
            _line(curve, "#0b5394", 2),
            _text("a blind guess is right", LEFT + SIDE / 2, HEIGHT - 12, "middle"),
            _text("the best attacker is right", 14, height, "middle", transform=f"rotate(-90 14 {height})"),
        ]
    )
    box = f"0 0 {WIDTH} {HEIGHT}"
    made = tag("svg", drawn, viewBox=box, width=WIDTH, height=HEIGHT, font_family="sans-serif", role="img")
    return str(made).replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)


def save_chart(path: Path, profile: Profile, title: str) -> None:
    """Write the chart to a file."""
    if path.suffix.lower() != ".svg":
        raise InvalidArgument(f"risk: expected a chart named .svg, got {path.name!r}.")
    try:
        path.write_text(chart(profile, title) + "\n", encoding="utf-8")
    except OSError:
        raise InvalidArgument(f"risk: {str(path)!r} cannot be written. Check the folder.") from None


def bars(risk: Risk, *, width: int = 40) -> list[str]:
    """The chart for a terminal: a bar for each guess, its dark part what a blind guess reaches.

    >>> from dpbayes import PureDP
    >>> print(bars(Risk.of(PureDP(epsilon=1.0), blind=(0.1, 0.5)), width=20)[1])
       50 % ██████████▒▒▒▒▒▒        at most 81.7 %
    """
    from dpbayes.privacy.risk import percent

    lines = []
    for blind, right in risk.guesses:
        full, reach = round(width * blind), round(width * right)
        bar = "█" * full + "▒" * (reach - full)
        lines.append(f"{percent(blind):>7} {bar:<{width}}  at most {percent(right)}")
    return lines


def _x(share: float) -> float:
    return LEFT + SIDE * share


def _y(share: float) -> float:
    return TOP + SIDE * (1.0 - share)


def _line(points: str, colour: str, width: int, **more: object) -> Html:
    return tag("polyline", points=points, fill="none", stroke=colour, stroke_width=width, **more)


def _text(said: str, x: float, y: float, anchor: str, **more: object) -> Html:
    return tag("text", said, x=x, y=y, text_anchor=anchor, font_size=12, **more)


def _tick(share: float) -> Html:
    said, x, y = f"{share:.0%}", _x(share), _y(share)
    ruled = (
        _line(f"{x},{_y(0)} {x},{_y(1)}", "#ddd", 1),
        _line(f"{_x(0)},{y} {_x(1)},{y}", "#ddd", 1),
        _text(said, x, _y(0) + 16, "middle"),
        _text(said, LEFT - 6, y + 4, "end"),
    )
    return joined(ruled)
