#!/bin/sh
# Prints the path of a local Chromium: $NODELEASE_TEST_CHROMIUM, one on the PATH, or that of Debian's package.
#   install-chromium.sh          installs the package first when it is missing (as root)
#   install-chromium.sh --find   fails instead when it is missing
set -eu

if [ -n "${NODELEASE_TEST_CHROMIUM:-}" ]; then
  [ -x "$NODELEASE_TEST_CHROMIUM" ] || {
    echo "NODELEASE_TEST_CHROMIUM: expected a program, got $NODELEASE_TEST_CHROMIUM" >&2
    exit 1
  }
  echo "$NODELEASE_TEST_CHROMIUM"
  exit
fi

found() {
  command -v chromium || command -v chromium-browser || command -v google-chrome
}

if ! found >/dev/null; then
  [ "${1:-}" != --find ] || exit 1
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "Chromium is not installed. Debian: apt-get install chromium. Elsewhere: set NODELEASE_TEST_CHROMIUM to one." >&2
    exit 1
  fi
  echo 'Installing chromium with apt-get.' >&2
  . "$(dirname "$0")/apt.sh"
  apt_install chromium
  found >/dev/null || {
    echo 'The package chromium is not what was expected: no chromium on the path. Set NODELEASE_TEST_CHROMIUM to one.' >&2
    exit 1
  }
fi
found
