#!/bin/sh
# Prints the folder of promtool and prometheus: those on the PATH, else those of Debian's and Ubuntu's package. That is unpacked into a cache
# outside the source tree and not installed: installed, it would start a server of its own.
#   install-prometheus.sh          gets the package first when it is missing
#   install-prometheus.sh --find   fails instead when it is missing
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodelease-test
folder=$cache/prometheus

if command -v promtool >/dev/null && command -v prometheus >/dev/null; then
  dirname "$(command -v promtool)"
  exit 0
fi
if [ -x "$folder/usr/bin/promtool" ] && [ -x "$folder/usr/bin/prometheus" ]; then
  echo "$folder/usr/bin"
  exit 0
fi
[ "${1:-}" != --find ] || exit 1

if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  echo 'Prometheus is not installed. Put promtool and prometheus on the PATH: https://prometheus.io/download/' >&2
  exit 1
fi
echo "Getting the package prometheus with apt-get, once, into $folder." >&2
mkdir -p "$cache"
# Unpacked aside and moved into place in one step: an aborted run, or two at once, leave no half of it.
unpacking=$(mktemp -d "$cache/unpacking-XXXXXX")
trap 'rm -rf "$unpacking"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
download() {
  # apt-get gives up root for its own user, who must not be kept from the folder.
  (cd "$unpacking" && apt-get -o APT::Sandbox::User=root download prometheus >&2)
}
. "$(dirname "$0")/apt.sh"
with_lists download || {
  echo 'The package prometheus cannot be downloaded. Put promtool and prometheus on the PATH: https://prometheus.io/download/' >&2
  exit 1
}
dpkg-deb -x "$unpacking"/prometheus_*.deb "$unpacking/files"
[ -x "$unpacking/files/usr/bin/promtool" ] && [ -x "$unpacking/files/usr/bin/prometheus" ] || {
  echo 'The package prometheus is not what was expected: no promtool or no prometheus in /usr/bin.' >&2
  exit 1
}
[ -e "$folder" ] || mv -T "$unpacking/files" "$folder" 2>/dev/null || [ -x "$folder/usr/bin/promtool" ]
echo "$folder/usr/bin"
