"""The rights that a role has on a store, and the statement that gives it those that are missing."""

from __future__ import annotations

from typing import Any

import psycopg

from trivet.errors import StoreError
from trivet.stores.postgres.address import Address

Connection = psycopg.Connection[tuple[Any, ...]]

TABLE_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")

_SCHEMA = """
SELECT current_user, n.oid IS NOT NULL, has_database_privilege(current_database(), 'CREATE'),
       coalesce(has_schema_privilege(n.oid, 'USAGE'), false), coalesce(has_schema_privilege(n.oid, 'CREATE'), false),
       EXISTS (SELECT 1 FROM pg_tables t WHERE t.schemaname = s.name AND t.tablename = 'migrations')
FROM (SELECT %s::text AS name) s LEFT JOIN pg_namespace n ON n.nspname = s.name
"""


def check_schema(connection: Connection, address: Address) -> None:
    """Refuse a schema that this role may not use, or not make, with the statement that lets it."""
    row = connection.execute(_SCHEMA, (address.schema,)).fetchone()
    assert row is not None
    role, exists, may_make_schemas, may_use, may_create, has_tables = row
    where, schema = f"store: {address.shown!r}", address.schema
    if not exists and not may_make_schemas:
        raise StoreError(
            f"{where}: the schema {schema!r} does not exist, and this role may not create it; "
            f"let an administrator run `CREATE SCHEMA {schema} AUTHORIZATION {role}`"
        )
    needed = "USAGE" if has_tables else "USAGE, CREATE"
    if exists and not (may_use and (has_tables or may_create)):
        raise StoreError(
            f"{where}: the right {needed} on the schema {schema!r} is missing; "
            f"let its owner run `GRANT {needed} ON SCHEMA {schema} TO {role}`"
        )


def missing_rights(connection: Connection, address: Address) -> str:
    """Return what this role may not do with the rows of the store, and the statement that lets it; else nothing.

    A role that may not read is refused.
    """
    rights = ", ".join(f"has_table_privilege(%s, '{right}')" for right in TABLE_RIGHTS)
    row = connection.execute(f"SELECT current_user, {rights}", (address.qualified("heads"),) * 4).fetchone()
    assert row is not None
    missing = [right for right, granted in zip(TABLE_RIGHTS, row[1:], strict=True) if not granted]
    if not missing:
        return ""
    named, schema = ", ".join(missing), address.schema
    plural = f"rights {named} are" if len(missing) > 1 else f"right {named} is"
    told = (
        f"store: {address.shown!r}: the {plural} missing on its tables; let its owner run "
        f"`GRANT {named} ON ALL TABLES IN SCHEMA {schema} TO {row[0]}`"
    )
    if "SELECT" in missing:
        raise StoreError(told)
    return told
