#!/bin/sh
# Prints the paths of SPIN and of a C compiler, a line each: those on the PATH, or those of Debian's and Ubuntu's packages.
#   install-spin.sh          installs the packages first when one is missing (as root)
#   install-spin.sh --find   fails instead when something is missing
set -eu

found() {
  command -v spin >/dev/null && command -v gcc >/dev/null
}

if ! found; then
  [ "${1:-}" != --find ] || exit 1
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "SPIN is not installed. Debian or Ubuntu: apt-get install spin gcc libc6-dev" >&2
    exit 1
  fi
  echo 'Installing spin and gcc with apt-get.' >&2
  . "$(dirname "$0")/apt.sh"
  apt_install spin gcc libc6-dev
  found || {
    echo 'The packages are not what was expected: no spin or no gcc on the path.' >&2
    exit 1
  }
fi
command -v spin
command -v gcc
