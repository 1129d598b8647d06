#!/bin/sh
# Prints the path of podman, which runs containers where there is no Docker: with runc, and with names for the containers of a network.
#   install-podman.sh          installs the packages of Debian or Ubuntu first when one is missing (as root)
#   install-podman.sh --find   fails instead when something is missing
set -eu

packages='podman runc iptables netavark aardvark-dns'

found() {
  command -v podman >/dev/null && command -v runc >/dev/null && command -v iptables >/dev/null || return 1
  [ -x /usr/lib/podman/netavark ] && [ -x /usr/lib/podman/aardvark-dns ]
}

if ! found; then
  [ "${1:-}" != --find ] || exit 1
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "Neither Docker nor podman is there. Start Docker, or on Debian or Ubuntu: apt-get install $packages" >&2
    exit 1
  fi
  echo "Installing $packages with apt-get." >&2
  . "$(dirname "$0")/apt.sh"
  # shellcheck disable=SC2086
  apt_install $packages
  found || {
    echo 'The packages are not what was expected: no podman, runc or iptables, or no /usr/lib/podman/{netavark,aardvark-dns}.' >&2
    exit 1
  }
fi
command -v podman
