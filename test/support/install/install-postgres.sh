#!/bin/sh
# Prints the folder of PostgreSQL's programs: the newest of Debian's and Ubuntu's packages.
#   install-postgres.sh          installs the package first when it is missing (as root)
#   install-postgres.sh --find   fails instead when it is missing
set -eu

found() {
  newest=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
  [ -x "$newest/initdb" ] && [ -x "$newest/postgres" ]
}

if ! found; then
  [ "${1:-}" != --find ] || exit 1
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo 'PostgreSQL is not installed. Debian or Ubuntu: apt-get install postgresql' >&2
    exit 1
  fi
  echo 'Installing PostgreSQL with apt-get.' >&2
  # Debian makes a cluster: not here.
  mkdir -p /etc/postgresql-common/createcluster.d
  echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/nodelease-tests.conf
  . "$(dirname "$0")/apt.sh"
  apt_install postgresql
fi
found
echo "$newest"
