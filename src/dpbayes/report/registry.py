"""An entry for the public registry of differential privacy deployments (registry.opendp.org), ready for its editors.

Source: the schema of the registry's data (deployments-schema.yaml of opendp/deployments-registry-data, 2026), tier 3.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal, get_args

from dpbayes.base import checks
from dpbayes.base.codec import Record
from dpbayes.base.display import listed_and
from dpbayes.base.errors import InvalidArgument
from dpbayes.release.format import Release
from dpbayes.report.page import title
from dpbayes.words import promise as say
from dpbayes.words import report as words

FILE = "registry-entry.yaml"

CuratorType = Literal["Government", "Industry", "Nonprofit"]
Sector = Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What the registry asks and a release does not say."""

    curator: str
    """Who publishes: an office, a company."""
    curator_type: CuratorType
    region: str
    """Which region the data describe, or whose laws apply."""
    sector: Sector | None = None

    def __post_init__(self) -> None:
        checks.one_of("registry", get_args(CuratorType), curator_type=self.curator_type)
        if self.sector is not None:
            checks.one_of("registry", get_args(Sector), sector=self.sector)
        if not self.curator.strip() or not self.region.strip():
            raise InvalidArgument("registry: expected the curator's name and the region of the data.")


def entry(release: Release, deployment: Deployment) -> Record:
    """The entry as data, with everything that the release and its ledger know."""
    if release.seeded:
        raise InvalidArgument("registry: a seeded release is not private, so there is nothing to register.")
    said, spent = release.about, release.spending
    tables = listed_and([words.title(table.marginal) for table in release.asked], most=20)
    basic: Record = {
        "name": title(release),
        "data_curators": [{"data_curator_name": deployment.curator, "data_curator_type": deployment.curator_type}],
        "description": f"Tables of {release.dataset}: {tables}." if tables else f"A release of {release.dataset}.",
        "intended_use": said.get("purpose") or "Publication of statistics.",
        "data_product_type": "Machine learning model" if release.kind == "model" else "Summary statistics",
        "data_product_region": deployment.region,
        "publication_date": release.created[:10],
    }
    if deployment.sector is not None:
        basic["data_product_sector"] = deployment.sector
    privacy: Record = {
        "privacy_unit": say.unit_name(release),
        "privacy_unit_details": say.unit_details(release),
        "privacy_parameters": say.parameters(release.promise),
        "privacy_parameters_details": f"{release.promise}. {release.statement()}",
    }
    if release.records is not None and release.unit.max_rows == 1:
        privacy["number_of_privacy_units"] = release.records
    more = "A ledger adds up all releases of the same data." if spent is not None else "No ledger is kept."
    slug = f"{title(release)} {deployment.curator} {release.created[:4]}"
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", slug.lower()).strip("-") or "release",
        "deployment": {
            "basic": basic,
            "dp_variant": {
                "variant_name": say.variant(release.promise),
                "data_domain": say.domain(release),
                "unprotected_quantities": say.unprotected(release),
            },
            "privacy_loss": privacy,
            "deployment_model": {
                "model_name": "Central",
                "trust_assumptions": say.TRUST,
                "release_type": "One release",
                "release_type_details": f"{more} {say.composition(release)}",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
                "access_type_details": "Readers get files. They cannot query the data.",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": say.preparation(release),
                "mechanisms": " ".join([*say.mechanisms(release)[:20], say.implementation(release), say.SIDE]),
                "composition": say.composition(release),
                "post_processing": say.POST,
                "justification": f"How the mechanism was chosen: {release.choice.rstrip('.')}.",
                "utility": say.accuracy(release),
            },
            "administrative": {
                "status": "Draft",
                "registry_authors": [said.get("author") or deployment.curator],
                "tier": 3,
            },
        },
    }


def entry_yaml(release: Release, deployment: Deployment) -> str:
    """The entry as the registry keeps it. Texts are quoted, so that nothing in them is taken for YAML."""
    return "\n".join(_yaml(entry(release, deployment), 0)) + "\n"


def _yaml(value: Record, depth: int) -> list[str]:
    lines, space = [], "  " * depth
    for key, item in value.items():
        if isinstance(item, dict):
            lines += [f"{space}{key}:", *_yaml(item, depth + 1)] if item else [f"{space}{key}: {{}}"]
        else:
            lines.append(f"{space}{key}: {_scalar(item)}")
    return lines


def _scalar(value: object) -> str:
    """JSON, which is YAML; but for YAML a number in powers of ten has a decimal point."""
    said = json.dumps(value, ensure_ascii=False)
    return said.replace("e", ".0e") if isinstance(value, float) and "e" in said and "." not in said else said
