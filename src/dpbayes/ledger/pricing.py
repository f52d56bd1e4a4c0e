"""Owner and analyst of a PostgreSQL ledger, told apart by the database, which prices Gaussian and Laplace noise itself.

Analysts have no right to write the tables. They append through a function of the owner's, which takes charges and
notes of draws only, each the next entry of its chain. Limits, acceptances and entries that take a charge back are
refused by the database itself.

An analyst's client could lie about a price, so the database prices each record itself, in decimals, rounded up, and
refuses what is above the limit, and what it cannot price. The owner is trusted: with each entry of the owner's, the
client writes down how far the data set's limit is used.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpbayes.base.codec import canonical
from dpbayes.ledger.account import Account
from dpbayes.ledger.connection import Connection
from dpbayes.mechanisms.sum_zero import MOST_CELLS

LEAST_SIGMA = 2
"""Below it the series of the shift is not exact, and Gaussian noise under an (ε, δ) limit is the owner's."""


def coefficients() -> list[Fraction]:
    """a_k of Φ⁻¹(½ + z/√2π) = Σ a_k·z^(2k+1), all positive, with a_(k+1)/a_k < 2/π

    a_k = c_k/((2k+1)·2^k), c_k = Σ_(m<k) c_m·c_(k−1−m)/((m+1)(2m+1)), c_0 = 1.

    Symbols: Φ the distribution function of the normal law.
    Source: docs/explanation/proofs/adaptive.md, "In the database".
    Adjacency: none.
    """
    c = [Fraction(1)]
    for k in range(1, 40):
        c.append(sum((c[m] * c[k - 1 - m] / ((m + 1) * (2 * m + 1)) for m in range(k)), Fraction(0)))
    return [value / ((2 * k + 1) * 2**k) for k, value in enumerate(c)]


def _decimals(value: Fraction) -> str:
    """Fifty of them, rounded up."""
    digits = str(math.ceil(value * 10**50)).rjust(51, "0")
    return f"{digits[:-50]}.{digits[-50:]}"


QUANTILE = f"""
CREATE OR REPLACE FUNCTION dpbayes_quantile(z numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE
SET search_path = SCHEMA, pg_temp AS $$
DECLARE
  power numeric := z;
  ratio numeric := z * z * 0.63661977236758134308;
  total numeric := 0;
  factor numeric;
BEGIN
  FOREACH factor IN ARRAY ARRAY[{", ".join(map(_decimals, coefficients()))}] LOOP
    total := total + factor * power;
    power := round(power * z * z, 50);
  END LOOP;
  RETURN round(total + factor * power / (1 - ratio), 45) + 1e-40;
END $$"""
"""Φ⁻¹(½ + z/√2π), rounded up: the terms left out are below a geometric series."""

PRICE = f"""
CREATE OR REPLACE FUNCTION dpbayes_price(part jsonb, unit jsonb, OUT pure numeric, OUT rho numeric, OUT square numeric,
  OUT flag numeric, OUT composed boolean) LANGUAGE plpgsql IMMUTABLE SET search_path = SCHEMA, pg_temp AS $$
DECLARE
  made jsonb := part->'mechanism';
  kind text := made->>'mechanism';
  closed boolean := kind = 'sum-zero-laplace-1';
  field text := CASE WHEN kind = 'gaussian-1' THEN 'sigma' WHEN kind = 'laplace-1' OR closed THEN 'scale' END;
  one numeric := 1.{"0" * 50};
  sides numeric := CASE unit->>'adjacency' WHEN 'add-remove' THEN 1 WHEN 'replace-one' THEN 2 END;
  rows numeric := (unit->>'max_rows')::numeric;
  noise numeric;
  mu numeric;
BEGIN
  IF field IS NULL OR jsonb_typeof(part->'times') IS DISTINCT FROM 'number'
     OR jsonb_typeof(made->field) IS DISTINCT FROM 'number' OR part->>'times' !~ '^[1-9][0-9]{{0,9}}$'
     OR (part->>'times')::numeric > 1000000000 OR part <> jsonb_build_object('mechanism', made, 'times', part->'times')
     OR made::text <> (jsonb_build_object('mechanism', kind, field, made->field, 'unit', unit)
        || CASE WHEN closed THEN jsonb_build_object('cells', made->'cells') ELSE '{{}}' END)::text
     OR closed AND (jsonb_typeof(made->'cells') IS DISTINCT FROM 'number' OR made->>'cells' !~ '^[1-9][0-9]{{0,2}}$'
        OR NOT (made->>'cells')::numeric BETWEEN 2 AND {MOST_CELLS} OR sides <> 2 OR unit->'person' IS NOT NULL)
     OR NOT (made->>field)::numeric BETWEEN 0.000001 AND 1000000000000 THEN
    RAISE EXCEPTION 'for the owner only' USING ERRCODE = 'DP002';
  END IF;
  noise := (made->>field)::numeric;
  composed := true;
  flag := 0;
  IF kind <> 'gaussian-1' THEN
    pure := one * sides * rows / noise;
    rho := CASE WHEN rows = 1 AND NOT closed THEN one * sides / (2 * noise * noise) ELSE pure * pure / 2 END;
    IF pure < 20 THEN
      mu := 2 * dpbayes_quantile(round(1.25331413731550025121 * (1 - exp(-pure)) / (1 + exp(-pure)), 50));
    END IF;
  ELSE
    rho := one * sides * rows * rows / (2 * noise * noise);
    IF rows = 1 AND noise BETWEEN {LEAST_SIGMA} AND 300 THEN
      composed := noise < 4;
      flag := 1e-30;
      IF sides = 1 THEN
        mu := 2 * dpbayes_quantile(one / (2 * noise));
      ELSE
        mu := one / (noise * sqrt(8 * one));
        mu := dpbayes_quantile(mu) + dpbayes_quantile(round(mu * (1 + 2 * exp(-one / (4 * noise * noise))), 50));
      END IF;
      mu := mu * 1.0000000005;
    ELSIF noise > {LEAST_SIGMA} THEN
      composed := noise < 11;
      mu := sqrt(one * sides * rows * rows / (noise * noise - 2.25)) * 1.0000000000005;
      flag := CASE WHEN mu < 20 THEN 10 * sides * rows * exp(mu * mu / 8 - 44.4132198049 * one) * 0.886227
                                     * (mu / 2.828427 + sqrt(mu * mu / 8 + 2)) END;
    END IF;
  END IF;
  pure := round(pure, 40) + 1e-40;
  rho := round(rho, 40) + 1e-40;
  square := round(mu * mu, 40) + 1e-40;
END $$"""
"""Pure ε, ρ, and the squared shift that covers a release except with probability ``flag``; NULL is infinite.

Where clients may compose a charge exactly (``composed``), their price is lower, and uses slack instead.
"""

WEIGH = """
CREATE OR REPLACE FUNCTION dpbayes_weigh(wanted text, releases jsonb) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = SCHEMA, pg_temp AS $$
DECLARE
  standing dpbayes_standing;
  unit jsonb;
  routes jsonb;
  after jsonb := '[]';
  route jsonb;
  used numeric;
  flags numeric;
BEGIN
  SELECT * INTO standing FROM dpbayes_standing WHERE dataset = wanted;
  routes := standing.routes;
  unit := (SELECT text::jsonb->'unit' FROM dpbayes_entries WHERE dataset = wanted AND serial = standing.budget);
  IF unit IS NULL OR EXISTS (SELECT 1 FROM dpbayes_entries WHERE dataset = wanted AND serial > standing.serial
                             AND text::jsonb->>'kind' IN ('budget', 'charge')) THEN
    RAISE EXCEPTION 'the owner has to open it' USING ERRCODE = 'DP003';
  END IF;
  IF jsonb_typeof(releases) IS DISTINCT FROM 'array' OR jsonb_array_length(releases) NOT BETWEEN 1 AND 100000
     OR jsonb_array_length(routes) = 0 THEN
    RAISE EXCEPTION 'for the owner only' USING ERRCODE = 'DP002';
  END IF;
  FOR route IN SELECT jsonb_array_elements(routes) LOOP
    SELECT CASE WHEN bool_and(share IS NOT NULL) THEN sum(share) END,
           CASE WHEN bool_and(flag IS NOT NULL) THEN coalesce(sum(times * flag) / (route->>'slack')::numeric, 0) END
           + CASE WHEN bool_or(composed) THEN sum(share) ELSE 0 END
      INTO used, flags
      FROM (SELECT (part->>'times')::numeric AS times, p.flag, p.composed, (part->>'times')::numeric
              * CASE route->>'by' WHEN 'pure' THEN p.pure WHEN 'rho' THEN p.rho WHEN 'square' THEN p.square END
              / (route->>'most')::numeric AS share
            FROM jsonb_array_elements(releases) part, dpbayes_price(part, unit) p) priced;
    used := round((route->>'used')::numeric + used, 40) + 1e-40;
    flags := round((route->>'flags')::numeric + flags, 40) + 1e-40;
    IF used <= 1.00000000000001 AND (flags <= 1.00000000000001 OR route->'slack' IS NULL) THEN
      after := after || jsonb_build_array(route || jsonb_build_object('used', used, 'flags', flags));
    END IF;
  END LOOP;
  IF after = '[]' THEN
    RAISE EXCEPTION 'above the limit' USING ERRCODE = 'DP001';
  END IF;
  RETURN after::text;
END $$"""
"""How far the limit is used with these releases too, by every route that still holds; refused if none does."""

FUNCTIONS = (QUANTILE, PRICE, WEIGH)


def routes(account: Account) -> str:
    """The ways in which the limit can be kept, and the share of each that is used.

    A sum of pure ε or of ρ; under the rule ``gaussian`` the squared shifts, or the pure ε of everything: the first and
    the last item of the menu. There the database's prices are never below those that every reader computes.
    """
    found = account.budget.routes(account.charged)
    return canonical([route for route in found if max(float(route["used"]), float(route["flags"])) <= 1.0])


LOCK = """
CREATE OR REPLACE FUNCTION dpbayes_lock(wanted text) RETURNS text LANGUAGE sql SECURITY DEFINER
SET search_path = SCHEMA, pg_temp AS $$ SELECT head FROM dpbayes_datasets WHERE dataset = wanted FOR UPDATE $$"""

APPEND = """
CREATE OR REPLACE FUNCTION dpbayes_append(wanted text, added text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = SCHEMA, pg_temp AS $$
DECLARE
  body jsonb := added::jsonb;
  last text := dpbayes_lock(wanted);
  place integer := (SELECT max(serial) + 1 FROM dpbayes_entries WHERE dataset = wanted);
  hashed text := encode(sha256(convert_to(added, 'UTF8')), 'hex');
  fields text[] := ARRAY(SELECT jsonb_object_keys(body) ORDER BY 1);
  common text[] := ARRAY['about', 'dataset', 'kind', 'previous', 'serial', 'time'];
  accepted text[];
  later text;
BEGIN
  IF last IS NULL OR body->>'dataset' IS DISTINCT FROM wanted OR body->>'previous' IS DISTINCT FROM last
     OR body->'serial' IS DISTINCT FROM to_jsonb(place) OR octet_length(added) <> char_length(added) THEN
    RAISE EXCEPTION 'not the next entry' USING ERRCODE = '42501';
  END IF;
  IF body->>'kind' = 'charge' THEN
    accepted := ARRAY(SELECT text::jsonb->>'schema' FROM dpbayes_entries
                      WHERE dataset = wanted AND coalesce(text::jsonb->>'schema', '') <> '');
    IF fields <> ARRAY(SELECT unnest(common || ARRAY['lock', 'releases', 'schema', 'software']) ORDER BY 1)
       OR jsonb_typeof(body->'releases') <> 'array' OR jsonb_array_length(body->'releases') = 0
       OR (body->>'schema' <> '' AND cardinality(accepted) > 0 AND NOT body->>'schema' = ANY (accepted)) THEN
      RAISE EXCEPTION 'not a charge' USING ERRCODE = '42501';
    END IF;
    later := dpbayes_weigh(wanted, body->'releases');
  ELSIF body->>'kind' = 'drawn' THEN
    IF fields <> ARRAY(SELECT unnest(common || ARRAY['charge', 'digest']) ORDER BY 1)
       OR NOT EXISTS (SELECT 1 FROM dpbayes_entries WHERE dataset = wanted AND to_jsonb(serial) = body->'charge'
                      AND text::jsonb->>'kind' = 'charge')
       OR EXISTS (SELECT 1 FROM dpbayes_entries WHERE dataset = wanted AND text::jsonb->'charge' = body->'charge') THEN
      RAISE EXCEPTION 'not a note of a draw' USING ERRCODE = '42501';
    END IF;
  ELSE
    RAISE EXCEPTION 'for the owner only' USING ERRCODE = '42501';
  END IF;
  INSERT INTO dpbayes_entries (dataset, serial, text, hash) VALUES (wanted, place, added, hashed);
  UPDATE dpbayes_datasets SET head = hashed WHERE dataset = wanted;
  UPDATE dpbayes_standing SET serial = place, routes = later WHERE dataset = wanted AND later IS NOT NULL;
END $$"""

TABLES = "dpbayes_ledger, dpbayes_datasets, dpbayes_entries, dpbayes_standing"

# how far a limit is used after the entry ``serial``, and which entry set it
STANDING = """
CREATE TABLE dpbayes_standing (dataset VARCHAR NOT NULL PRIMARY KEY, budget INTEGER NOT NULL, serial INTEGER NOT NULL,
  routes TEXT NOT NULL)"""

CALLED = "dpbayes_lock(text), dpbayes_weigh(text, jsonb), dpbayes_append(text, text)"


def install(connection: Connection) -> None:
    """Make the functions, and two roles named after the database: ``…_ledger_owner`` and ``…_ledger_analyst``.

    A user who may not make roles makes none, and is the only one with rights.
    """
    schema = str(connection.scalar("SELECT quote_ident(current_schema())"))
    for text in (STANDING, *FUNCTIONS, LOCK, APPEND):  # temporary tables of the caller come last in its path
        connection.execute(text.replace("SCHEMA", schema))
    connection.execute(f"REVOKE ALL ON FUNCTION {CALLED} FROM PUBLIC")
    if not connection.scalar("SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user"):
        return
    owner, analyst = (_role(connection, kind) for kind in ("owner", "analyst"))
    for statement in (
        f"GRANT USAGE ON SCHEMA {schema} TO {owner}, {analyst}",
        f"GRANT SELECT, INSERT, UPDATE ON {TABLES} TO {owner}",
        f"GRANT SELECT ON dpbayes_ledger, dpbayes_entries TO {analyst}",
        f"GRANT SELECT (dataset, head) ON dpbayes_datasets TO {analyst}",  # fingerprints are the owner's
        f"GRANT EXECUTE ON FUNCTION {CALLED} TO {analyst}",
    ):
        connection.execute(statement)


def _name(connection: Connection, kind: str) -> str:
    return str(connection.scalar("SELECT left(current_database(), 40) || '_ledger_' || ?", [kind]))


def exist(connection: Connection) -> bool:
    """Whether there is a role for analysts, with the right to append."""
    name = _name(connection, "analyst")
    return connection.scalar("SELECT 1 FROM pg_roles WHERE rolname = ?", [name]) is not None and bool(
        connection.scalar("SELECT has_function_privilege(?, to_regproc('dpbayes_append')::oid, 'EXECUTE')", [name])
    )


def _role(connection: Connection, kind: str) -> str:
    """The quoted name of a role, which is made where there is none."""
    name = _name(connection, kind)
    quoted = str(connection.scalar("SELECT quote_ident(?)", [name]))
    if connection.scalar("SELECT 1 FROM pg_roles WHERE rolname = ?", [name]) is None:
        connection.execute(f"CREATE ROLE {quoted} NOLOGIN")
    return quoted


def owns(connection: Connection) -> bool:
    """Whether the user may write the tables."""
    return bool(connection.scalar("SELECT has_table_privilege('dpbayes_datasets', 'UPDATE')"))


def note(connection: Connection, account: Account) -> None:
    """Write down how far the limit is used, as the owner, where the database weighs what analysts charge."""
    if connection.scalar("SELECT to_regclass('dpbayes_standing')::text") is None:
        return  # made before there were roles
    known = "SELECT budget FROM dpbayes_standing WHERE dataset = ?"
    if account.head.kind != "charge" or connection.scalar(known, [account.dataset]) is None:
        known = "SELECT max(serial) FROM dpbayes_entries WHERE dataset = ? AND text::jsonb->>'kind' = 'budget'"
    budget = connection.scalar(known, [account.dataset])
    connection.execute(
        "INSERT INTO dpbayes_standing (dataset, budget, serial, routes) VALUES (?, ?, ?, ?) ON CONFLICT (dataset) "
        "DO UPDATE SET budget = excluded.budget, serial = excluded.serial, routes = excluded.routes",
        [account.dataset, budget, account.head.serial, routes(account)],
    )
