#!/bin/sh
# Prints the path of redis-server: that on the PATH, or that of Debian's and Ubuntu's packages. redis-cli comes with it.
#   install-redis.sh          installs the packages first when one is missing (as root)
#   install-redis.sh --find   fails instead when something is missing
set -eu

found() {
  command -v redis-server >/dev/null && command -v redis-cli >/dev/null
}

if ! found; then
  [ "${1:-}" != --find ] || exit 1
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo 'redis-server or redis-cli is not installed. Debian or Ubuntu: apt-get install redis-server' >&2
    exit 1
  fi
  echo 'Installing redis-server with apt-get.' >&2
  . "$(dirname "$0")/apt.sh"
  apt_install redis-server
fi
found
command -v redis-server
