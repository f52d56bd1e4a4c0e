"""The screens: each module lists its routes."""

from __future__ import annotations

from starlette.routing import Route

from dpbayes.studio.pages import ask, datasets, declare, models, published, review

PUBLIC: list[Route] = [*published.ROUTES, *models.ROUTES]
"""What readers may see: pure functions of releases, by GET only."""

READERS: list[Route] = [*published.HOME, *PUBLIC]
"""The studio for readers."""

PRIVATE: list[Route] = [
    *PUBLIC,
    *datasets.ROUTES,
    *declare.ROUTES,
    *ask.ROUTES,
    *review.ROUTES,
]
"""The studio of the owner of the data."""
