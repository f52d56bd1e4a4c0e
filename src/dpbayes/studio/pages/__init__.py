"""The screens: each module lists its routes."""

from __future__ import annotations

from starlette.routing import Route

from dpbayes.studio.pages import datasets, declare, table

PUBLIC: list[Route] = []
"""What readers may see: pure functions of releases, by GET only."""

PRIVATE: list[Route] = [*datasets.ROUTES, *table.ROUTES, *declare.ROUTES]
"""What the owner of the data may do."""
