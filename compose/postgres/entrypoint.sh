#!/bin/sh
# Makes the database's folder on the first start, then becomes Postgres. It needs no root, no capability and no writable
# root file system. A first start that was cut short leaves only `$PGDATA.new`, which the next one throws away.
set -eu

PGDATA=${PGDATA:-/var/lib/postgresql/data/pgdata}
user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}
export PGDATA

fail() {
    echo "entrypoint: $1" >&2
    exit 1
}

# A name is quoted where it becomes SQL.
quoted() {
    printf '"%s"' "$(printf '%s' "$1" | sed 's/"/""/g')"
}

password() {
    if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
        [ -r "$POSTGRES_PASSWORD_FILE" ] || fail "cannot read the password file $POSTGRES_PASSWORD_FILE"
        cat "$POSTGRES_PASSWORD_FILE"
    elif [ -n "${POSTGRES_PASSWORD:-}" ]; then
        printf '%s\n' "$POSTGRES_PASSWORD"
    else
        fail "set POSTGRES_PASSWORD_FILE or POSTGRES_PASSWORD"
    fi
}

initialise() {
    new=$PGDATA.new
    rm -rf "$new"
    password_file=$(mktemp)
    password > "$password_file"
    # Several arguments in one variable, as in the official image: split on purpose.
    # shellcheck disable=SC2086
    initdb --pgdata="$new" --username="$user" --pwfile="$password_file" --encoding=UTF8 --locale=C.UTF-8 \
        --auth-local=trust --auth-host=scram-sha-256 --no-instructions ${POSTGRES_INITDB_ARGS:-}
    rm -f "$password_file"
    if [ "$database" != postgres ]; then
        echo "create database $(quoted "$database")" | postgres --single -D "$new" postgres > /dev/null
    fi
    echo 'host all all all scram-sha-256' >> "$new/pg_hba.conf"
    echo "listen_addresses = '*'" >> "$new/postgresql.conf"
    mv "$new" "$PGDATA"
    sync
}

case "${1:-postgres}" in
    -*) set -- postgres "$@" ;;
esac
if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
    initialise
fi
exec "$@"
