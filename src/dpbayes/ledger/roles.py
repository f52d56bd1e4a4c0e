"""Owner and analyst of a PostgreSQL ledger, told apart by the database.

Analysts have no right to write the tables. They append through a function of the owner's, which takes charges and notes
of draws only, each the next entry of its chain. Limits, acceptances and entries that take a charge back are refused by
the database itself. Where a limit is pure or zCDP, it also sums what Laplace or Gaussian noise costs and refuses more
than the limit. Other prices are computed by clients, and checked by everyone who reads the ledger.
"""

from __future__ import annotations

from dpbayes.ledger.connection import Connection

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
  allowed jsonb;
  used float8;
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
    allowed := (SELECT text::jsonb->'budget' FROM dpbayes_entries
                WHERE dataset = wanted AND text::jsonb->>'kind' = 'budget' ORDER BY serial DESC LIMIT 1);
    used := (SELECT sum((part->>'times')::float8 * rows_moved * CASE
        WHEN allowed->>'notion' = 'pure-dp' AND made->>'mechanism' = 'laplace-1' THEN 1 / (made->>'scale')::float8
        WHEN allowed->>'notion' = 'zcdp' AND made->>'mechanism' = 'gaussian-1'
        THEN (made->'unit'->>'max_rows')::float8 / (2 * (made->>'sigma')::float8 ^ 2) END)
      FROM (SELECT jsonb_array_elements(text::jsonb->'releases') AS part FROM dpbayes_entries e
            WHERE dataset = wanted AND text::jsonb->>'kind' = 'charge' AND NOT EXISTS (
              SELECT 1 FROM dpbayes_entries v WHERE v.dataset = wanted AND v.text::jsonb->>'kind' = 'void'
              AND v.text::jsonb->'charge' = to_jsonb(e.serial))
            UNION ALL SELECT jsonb_array_elements(body->'releases')) parts,
        LATERAL (SELECT part->'mechanism' AS made) each,
        LATERAL (SELECT (made->'unit'->>'max_rows')::float8
                 * CASE made->'unit'->>'adjacency' WHEN 'replace-one' THEN 2 ELSE 1 END AS rows_moved) moved);
    IF used > coalesce(allowed->>'epsilon', allowed->>'rho')::float8 * (1 + 1e-9) THEN
      RAISE EXCEPTION 'above the limit' USING ERRCODE = 'DP001';
    END IF;
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
END $$"""

TABLES = "dpbayes_ledger, dpbayes_datasets, dpbayes_entries"


def install(connection: Connection) -> None:
    """Make the functions, and two roles named after the database: ``…_ledger_owner`` and ``…_ledger_analyst``.

    A user who may not make roles makes none, and is the only one with rights.
    """
    schema = str(connection.scalar("SELECT quote_ident(current_schema())"))
    for text in (LOCK, APPEND):  # with a search path that temporary tables of the caller come last in
        connection.execute(text.replace("SCHEMA", schema))
    for function in ("dpbayes_lock(text)", "dpbayes_append(text, text)"):
        connection.execute(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC")
    if not connection.scalar("SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user"):
        return
    owner, analyst = (_role(connection, kind) for kind in ("owner", "analyst"))
    for statement in (
        f"GRANT USAGE ON SCHEMA {schema} TO {owner}, {analyst}",
        f"GRANT SELECT, INSERT, UPDATE ON {TABLES} TO {owner}",
        f"GRANT SELECT ON dpbayes_ledger, dpbayes_entries TO {analyst}",
        f"GRANT SELECT (dataset, head) ON dpbayes_datasets TO {analyst}",  # fingerprints are the owner's
        f"GRANT EXECUTE ON FUNCTION dpbayes_lock(text), dpbayes_append(text, text) TO {analyst}",
    ):
        connection.execute(statement)


def _role(connection: Connection, kind: str) -> str:
    """The quoted name of a role, which is made where there is none."""
    name = connection.scalar("SELECT left(current_database(), 40) || '_ledger_' || ?", [kind])
    quoted = str(connection.scalar("SELECT quote_ident(?)", [name]))
    if connection.scalar("SELECT 1 FROM pg_roles WHERE rolname = ?", [name]) is None:
        connection.execute(f"CREATE ROLE {quoted} NOLOGIN")
    return quoted


def owns(connection: Connection) -> bool:
    """Whether the user may write the tables."""
    return bool(connection.scalar("SELECT has_table_privilege('dpbayes_datasets', 'UPDATE')"))
