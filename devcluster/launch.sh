#!/bin/sh
# Registers itself with the warden, then becomes the command.
#
# Usage: launch.sh DIRECTORY NAME COMMAND [ARGUMENT…]
#
# The rename is the atomic step: the warden either sees the whole process id, or has already taken `running` away and
# the command never starts.
set -eu
directory=$1 name=$2
shift 2
echo $$ >"$directory/$name.starting"
mv "$directory/$name.starting" "$directory/running/$name"
exec "$@"
