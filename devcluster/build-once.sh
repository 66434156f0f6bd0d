#!/bin/sh
# Runs a builder unless somebody else is running it, or has: at most one builder for DEST at a time.
#
# Usage: build-once.sh DEST BUILDER
#
# The lock is the kernel's (flock). It is free again when the last process of a builder is gone, however it went, so a
# lock can never be left behind — and a builder that outlives its parent still holds it.
set -eu
dest=$1 builder=$2

mkdir -p "$(dirname "$dest")"
exec 9>>"$dest.lock"
if ! flock -n 9; then
  echo "waiting for another process that is building $dest"
  flock 9
fi
# Built by whoever held the lock before.
[ ! -e "$dest" ] || exit 0
exec sh "$builder" "$dest"
