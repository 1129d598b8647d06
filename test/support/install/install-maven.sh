#!/bin/sh
# Prints the class path of the libraries that test/interop/$1/pom.xml names: Maven fetches them. Installs Maven and a JDK first when one is
# missing (Debian or Ubuntu, as root).
set -eu

packages='maven default-jdk-headless'

found() { command -v mvn >/dev/null && command -v java >/dev/null && command -v javac >/dev/null; }

if ! found; then
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "Maven or a JDK is not installed. Debian or Ubuntu: apt-get install $packages" >&2
    exit 1
  fi
  echo "Installing $packages with apt-get." >&2
  . "$(dirname "$0")/apt.sh"
  # shellcheck disable=SC2086
  apt_install $packages
fi
classpath=$(mktemp)
trap 'rm -f "$classpath"' EXIT
mvn --batch-mode --quiet --file "$(dirname "$0")/../../interop/$1/pom.xml" dependency:build-classpath "-Dmdep.outputFile=$classpath" >&2
cat "$classpath"
