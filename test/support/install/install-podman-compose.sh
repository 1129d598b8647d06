#!/bin/sh
# Prints the path of podman-compose, which runs compose files where there is no Docker. It is kept in a cache outside the source tree.
#   install-podman-compose.sh          installs it first when it is missing (needs Python 3 with venv and pip)
#   install-podman-compose.sh --find   fails instead when it is missing
set -eu

version=1.6.0
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodelease-test
folder=$cache/podman-compose-$version

if [ ! -e "$folder/complete" ]; then
  [ "${1:-}" != --find ] || exit 1
  command -v python3 >/dev/null || {
    echo 'Python 3 is not installed, so podman-compose cannot be.' >&2
    exit 1
  }
  mkdir -p "$cache"
  # In place, since such an environment cannot be moved; the mark says that it is complete.
  rm -rf "$folder"
  python3 -m venv "$folder" >&2 || {
    echo 'Debian or Ubuntu: apt-get install python3-venv' >&2
    exit 1
  }
  "$folder/bin/pip" install --quiet "podman-compose==$version" >&2
  touch "$folder/complete"
fi
echo "$folder/bin/podman-compose"
