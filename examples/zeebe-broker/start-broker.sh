#!/bin/sh
# Starts a broker under the node id that it was given, or, where there is none to start, prints the environment that one would get.
set -eu
env | grep '^ZEEBE_BROKER_' | sort
if [ -n "${BROKER:-}" ]; then
  # exec: signals are for the broker itself.
  exec "$BROKER"
fi
