#!/bin/sh
# Prints the paths of zsh and fish, a line each: those on the PATH, or those of Debian's and Ubuntu's packages.
#   install-shells.sh          installs the packages first when one is missing (as root)
#   install-shells.sh --find   fails instead when something is missing
set -eu

found() {
  command -v zsh >/dev/null && command -v fish >/dev/null
}

if ! found; then
  [ "${1:-}" != --find ] || exit 1
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "zsh or fish is not installed. Debian or Ubuntu: apt-get install zsh fish" >&2
    exit 1
  fi
  echo 'Installing zsh and fish with apt-get.' >&2
  . "$(dirname "$0")/apt.sh"
  apt_install zsh fish
  found || {
    echo 'The packages are not what was expected: no zsh or no fish on the path.' >&2
    exit 1
  }
fi
command -v zsh
command -v fish
