# For the scripts next to it: apt-get of Debian and Ubuntu.

# Runs a command of apt-get, and once more with new lists of packages where it fails: they may be old, or missing, as in most images of
# containers. One script at a time, for apt-get does not wait for another one that gets new lists.
with_lists() (
  exec 9</var/lib
  flock 9
  "$@" || { apt-get -o Acquire::Retries=3 update >&2 && "$@"; }
)

# Installs packages, and starts none of their servers, as Debian would at once.
apt_install() { with_lists install_packages "$@"; }
install_packages() {
  policy=/usr/sbin/policy-rc.d
  [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && trap 'rm -f "$policy"' EXIT; }
  DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" >&2
}
