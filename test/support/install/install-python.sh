#!/bin/sh
# Prints the folder of packages from PyPI: kept in a cache outside the source tree.
#   install-python.sh kazoo | aws     installs them there first when they are missing; needs Python 3 with pip
# kazoo is ZooKeeper's client for Python; aws has the AWS CLI and cfn-lint, which checks templates of CloudFormation.
set -eu

name=${1:?usage: install-python.sh NAME}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodelease-test
case $name in
  kazoo) version=2.11.0 packages=kazoo==2.11.0 ;;
  aws) version=1.46.3 packages='awscli==1.46.3 cfn-lint==1.58.0' ;;
  *) echo "There is no package $name here." >&2 && exit 64 ;;
esac
folder=$cache/$name-$version

if [ ! -d "$folder" ]; then
  if ! command -v python3 >/dev/null; then
    echo "Python 3 with pip is not installed, so $name cannot be. Debian or Ubuntu: apt-get install python3-pip" >&2
    exit 1
  fi
  echo "Installing $packages into $folder." >&2
  mkdir -p "$cache"
  # Installed aside and moved into place in one step: an aborted install, or two at once, leave no half of it.
  installing=$(mktemp -d "$cache/installing-XXXXXX")
  trap 'rm -rf "$installing"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  # shellcheck disable=SC2086 # several packages
  python3 -m pip install --quiet --disable-pip-version-check --target "$installing" $packages >&2
  [ -d "$folder" ] || mv -T "$installing" "$folder" 2>/dev/null || [ -d "$folder" ]
fi
echo "$folder"
