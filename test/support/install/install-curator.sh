#!/bin/sh
# Prints the class path of Apache Curator's service discovery: that of Debian's and Ubuntu's packages.
#   install-curator.sh          installs the packages first when one is missing, with a Java compiler (as root)
#   install-curator.sh --find   fails instead when something is missing
set -eu

jars=/usr/share/java
needed='curator-x-discovery curator-recipes curator-framework curator-client jackson-databind slf4j-simple'
# Service discovery needs the recipes, which its package forgets to name.
packages='libcurator-discovery-java libcurator-framework-java libcurator-client-java libcurator-recipes-java default-jdk-headless'

found() {
  command -v java >/dev/null && command -v javac >/dev/null || return 1
  for jar in $needed; do
    [ -e "$jars/$jar.jar" ] || return 1
  done
}

if ! found; then
  [ "${1:-}" != --find ] || exit 1
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "Apache Curator is not installed. Debian or Ubuntu: apt-get install $packages" >&2
    exit 1
  fi
  echo "Installing $packages with apt-get." >&2
  . "$(dirname "$0")/apt.sh"
  # shellcheck disable=SC2086
  apt_install $packages
  found || {
    echo "The packages are not what was expected: no java or javac, or no jars of Curator in $jars." >&2
    exit 1
  }
fi
class_path=
for jar in $needed; do class_path=$class_path${class_path:+:}$jars/$jar.jar; done
echo "$class_path"
