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
  # Debian starts nginx at once, on port 80: not here.
  policy=/usr/sbin/policy-rc.d
  [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && trap 'rm -f "$policy"' EXIT; }
  install() {
    # Two runs at once wait for each other.
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $packages >&2
  }
  # The list of packages may be old, or missing, as in most images of containers.
  install || { apt-get update >&2 && install; }
fi
found
