#!/bin/sh
# Prints the paths of dig, dnsmasq and nginx, a line each: those on the PATH, or those of Debian's and Ubuntu's packages.
#   install-dns-clients.sh          installs the packages first when one is missing (as root)
#   install-dns-clients.sh --find   fails instead when something is missing
set -eu

PATH=$PATH:/usr/sbin
found() {
  command -v dig && command -v dnsmasq && command -v nginx
}

if ! found >/dev/null; then
  [ "${1:-}" != --find ] || exit 1
  packages='bind9-dnsutils dnsmasq-base nginx-light'
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "dig, dnsmasq or nginx is not installed. Debian or Ubuntu: apt-get install $packages" >&2
    exit 1
  fi
  echo "Installing $packages with apt-get." >&2
  . "$(dirname "$0")/apt.sh"
  # shellcheck disable=SC2086
  apt_install $packages
fi
found
