"""Owner and analyst of a PostgreSQL ledger, told apart by the database.

Analysts have no right to write the tables. They append through a function of the owner's, which takes charges and notes
of draws only, each the next entry of its chain. Limits, acceptances and entries that take a charge back are refused by
the database itself. It prices what analysts charge (``pricing``), and refuses what is above the limit, and what it
cannot price.
"""

from __future__ import annotations

from dpbayes.ledger import pricing
from dpbayes.ledger.account import Account
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
    for text in (STANDING, *pricing.FUNCTIONS, LOCK, APPEND):  # temporary tables of the caller come last in its path
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
    budget = max(entry.serial for entry in account.entries if entry.kind == "budget")
    connection.execute(
        "INSERT INTO dpbayes_standing (dataset, budget, serial, routes) VALUES (?, ?, ?, ?) ON CONFLICT (dataset) "
        "DO UPDATE SET budget = excluded.budget, serial = excluded.serial, routes = excluded.routes",
        [account.dataset, budget, account.head.serial, pricing.routes(account)],
    )
