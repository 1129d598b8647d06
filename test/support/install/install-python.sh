#!/bin/sh
# Prints the folder of kazoo, ZooKeeper's client for Python, as it is on PyPI: kept in a cache outside the source tree.
#   install-kazoo.sh     installs it there first when it is missing; needs Python 3 with pip
set -eu

version=2.11.0
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodelease-test
folder=$cache/kazoo-$version

if [ ! -d "$folder" ]; then
  if ! command -v python3 >/dev/null; then
    echo 'Python 3 with pip is not installed, so kazoo cannot be. Debian or Ubuntu: apt-get install python3-pip' >&2
    exit 1
  fi
  echo "Installing kazoo $version into $folder." >&2
  mkdir -p "$cache"
  # Installed aside and moved into place in one step: an aborted install, or two at once, leave no half of it.
  installing=$(mktemp -d "$cache/installing-XXXXXX")
  trap 'rm -rf "$installing"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  python3 -m pip install --quiet --disable-pip-version-check --target "$installing" "kazoo==$version" >&2
  [ -d "$folder" ] || mv -T "$installing" "$folder"
fi
echo "$folder"
