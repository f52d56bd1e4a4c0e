"""Networks for other programs: pgmpy objects (extra ``networks``), BIF, NET and UAI files."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from dpbayes._checks import Floats
from dpbayes.errors import InvalidArgument, MissingExtra
from dpbayes.models.network import Network, parents_of

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[{}()\[\];,|]|[^\s{}()\[\];,|"]+', re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9_.+-]+")


def _pgmpy(module: str) -> Any:
    """A module of pgmpy, without the warnings about its own future that importing it prints."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return import_module(f"pgmpy.{module}")
    except ImportError:
        raise MissingExtra("networks: pgmpy is not installed; install dpbayes[networks].") from None


def to_pgmpy(network: Network) -> Any:
    """A pgmpy ``DiscreteBayesianNetwork`` with the same tables and the levels as state names."""
    factors, models = _pgmpy("factors.discrete"), _pgmpy("models")
    made = models.DiscreteBayesianNetwork(network.edges)
    made.add_nodes_from(network.nodes)
    for node, parents in network.parents.items():
        made.add_cpds(
            factors.TabularCPD(
                node,
                len(network.levels[node]),
                network.tables[node].T,
                evidence=list(parents) or None,
                evidence_card=[len(network.levels[parent]) for parent in parents] or None,
                state_names={name: list(network.levels[name]) for name in (node, *parents)},
            )
        )
    return made


def from_pgmpy(model: Any) -> Network:
    """A network from a pgmpy model whose nodes all have tables."""
    found: dict[str, tuple[tuple[str, ...], Floats]] = {}
    levels: dict[str, tuple[str, ...]] = {}
    for node in model.nodes():
        cpd = model.get_cpds(node)
        if cpd is None:
            raise InvalidArgument(f"networks: node {node!r} has no table.")
        parents = tuple(str(parent) for parent in cpd.variables[1:])
        levels[str(node)] = tuple(str(state) for state in cpd.state_names[node])
        found[str(node)] = parents, np.asarray(cpd.get_values()).T
    return _assembled(levels, found)


def query(network: Network, variables: list[str], evidence: Mapping[str, str] | None = None) -> dict[str, Any]:
    """P(variables | evidence), exact, by pgmpy's variable elimination: the names, their levels and an array."""
    known = dict(evidence or {})
    for name in (*variables, *known):
        if name not in network.levels:
            raise InvalidArgument(f"networks: there is no node {name!r}. It has {', '.join(network.nodes)}.")
    for name, level in known.items():
        if level not in network.levels[name]:
            raise InvalidArgument(f"networks: node {name!r} has no level {level!r}.")
    model = to_pgmpy(network)
    factor = _pgmpy("inference").VariableElimination(model).query(variables, evidence=known, show_progress=False)
    order = [factor.variables.index(name) for name in variables]
    return {
        "variables": list(variables),
        "levels": {name: list(network.levels[name]) for name in variables},
        "shares": np.transpose(factor.values, order),
    }


def to_bif(network: Network, name: str = "dpbayes") -> str:
    """The text of a BIF file; names that are not plain words are quoted."""
    lines = [f"network {_quoted(name)} {{", "}"]
    for node in network.nodes:
        levels = network.levels[node]
        listed = ", ".join(map(_quoted, levels))
        lines += [f"variable {_quoted(node)} {{", f"  type discrete [ {len(levels)} ] {{ {listed} }};", "}"]
    for node, parents in network.parents.items():
        if not parents:
            lines += [f"probability ( {_quoted(node)} ) {{", f"  table {_numbers(network.tables[node][0])};", "}"]
            continue
        lines.append(f"probability ( {_quoted(node)} | {', '.join(map(_quoted, parents))} ) {{")
        shape = [len(network.levels[parent]) for parent in parents]
        for index, row in zip(np.ndindex(*shape), network.tables[node], strict=True):
            given = ", ".join(_quoted(network.levels[parent][at]) for parent, at in zip(parents, index, strict=True))
            lines.append(f"  ({given}) {_numbers(row)};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def from_bif(text: str) -> Network:
    """Read a BIF file: variables, and probabilities as tables or row by row."""
    tokens = _tokens(text)
    levels: dict[str, tuple[str, ...]] = {}
    found: dict[str, tuple[tuple[str, ...], Floats]] = {}
    try:
        for word in tokens:
            if word == "network":
                _until(tokens, "}")
            elif word == "variable":
                name = next(tokens)
                body = _until(tokens, "}")  # ends with the list of levels
                levels[name] = tuple(level for level in body[body.index("{", 1) + 1 :] if level != ",")
                _until(tokens, "}")
            elif word == "probability":
                head = [name for name in _until(tokens, ")") if name not in ("(", ",")]
                child, parents = head[0], tuple(head[2:])
                found[child] = parents, _bif_table(_until(tokens, "}"), child, parents, levels)
            else:
                raise ValueError(word)
        return _assembled(levels, found)
    except (ValueError, IndexError, KeyError, StopIteration):
        raise InvalidArgument("networks: this is not a BIF file that can be read.") from None


def to_net(network: Network) -> str:
    """The text of a NET file, as Hugin and bnlearn read it; a name that is no plain word becomes a label."""
    short = _identifiers(network.nodes)
    lines = ["net", "{", "}"]
    for node in network.nodes:
        states = " ".join(_in_quotes(level) for level in network.levels[node])
        lines += [f"node {short[node]}", "{", f"  label = {_in_quotes(node)};", f"  states = ( {states} );", "}"]
    for node, parents in network.parents.items():
        given = f" | {' '.join(short[parent] for parent in parents)}" if parents else ""
        shape = [len(network.levels[name]) for name in (*parents, node)]
        data = _nested(network.tables[node].reshape(shape))
        lines += [f"potential ( {short[node]}{given} )", "{", f"  data = {data};", "}"]
    return "\n".join(lines) + "\n"


def to_uai(network: Network) -> str:
    """The text of a UAI file: variables and their levels are numbered in the order of the nodes.

    As the format has it, a table names its child last, and the child's levels vary fastest.
    """
    place = {node: str(number) for number, node in enumerate(network.nodes)}
    lines = ["BAYES", str(len(place)), " ".join(str(len(network.levels[node])) for node in place), str(len(place))]
    scopes = {node: (*network.parents[node], node) for node in place}
    lines += [f"{len(scope)} {' '.join(place[name] for name in scope)}" for scope in scopes.values()]
    for node in place:
        table = network.tables[node]
        lines += ["", str(table.size), *(" ".join(repr(float(share)) for share in row) for row in table)]
    return "\n".join(lines) + "\n"


def _nested(table: Floats) -> str:
    if table.ndim == 1:
        return f"( {' '.join(repr(float(share)) for share in table)} )"
    return f"({''.join(_nested(part) for part in table)})"


def _identifiers(names: Iterable[str]) -> dict[str, str]:
    """A different word of letters, digits and underscores for each name."""
    found: dict[str, str] = {}
    for name in names:
        word = re.sub(r"\W", "_", name, flags=re.ASCII)
        word = word if word[:1].isalpha() else f"n{word}"
        while word in found.values():
            word += "_"
        found[name] = word
    return found


def _bif_table(body: list[str], child: str, parents: tuple[str, ...], levels: dict[str, tuple[str, ...]]) -> Floats:
    shape = [len(levels[parent]) for parent in parents]
    table = np.full((int(np.prod(shape)), len(levels[child])), np.nan)
    statement: list[str] = []
    for word in [word for word in body if word not in ("{", ",")]:
        if word != ";":
            statement.append(word)
            continue
        if statement[0] == "table":
            table[:] = np.array(statement[1:], dtype=np.float64).reshape(table.shape[::-1]).T
        else:
            end = statement.index(")")
            index = [levels[parent].index(level) for parent, level in zip(parents, statement[1:end], strict=True)]
            table[int(np.ravel_multi_index(index, shape))] = np.array(statement[end + 1 :], dtype=np.float64)
        statement = []
    if np.isnan(table).any():
        raise ValueError(child)
    return table


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        word = match[0]
        if word.startswith('"'):
            yield re.sub(r"\\(.)", r"\1", word[1:-1])
        elif not word.startswith(("//", "/*")):
            yield word


def _until(tokens: Iterator[str], end: str) -> list[str]:
    words = []
    while (word := next(tokens)) != end:
        words.append(word)
    return words


def _assembled(levels: dict[str, tuple[str, ...]], found: dict[str, tuple[tuple[str, ...], Floats]]) -> Network:
    edges = [(parent, node) for node, (parents, _) in found.items() for parent in parents]
    ordered = parents_of(edges, found)
    parents = {node: found[node][0] for node in ordered}
    return Network(levels=levels, parents=parents, tables={node: found[node][1] for node in ordered})


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else _in_quotes(name)


def _in_quotes(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _numbers(row: Floats) -> str:
    return ", ".join(repr(float(share)) for share in row)
