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
  # Debian makes a cluster and starts it at once, on port 5432: not here.
  policy=/usr/sbin/policy-rc.d
  [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && trap 'rm -f "$policy"' EXIT; }
  mkdir -p /etc/postgresql-common/createcluster.d
  echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/nodelease-tests.conf
  install() {
    # Two runs at once wait for each other.
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends postgresql >&2
  }
  # The list of packages may be old, or missing, as in most images of containers.
  install || { apt-get update >&2 && install; }
fi
found
echo "$newest"
