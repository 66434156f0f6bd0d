#!/bin/sh
# Owns the folder and the processes of one control plane, and outlives whoever started it.
#
# Usage: warden.sh PARENT
#
# Makes a folder in PARENT and prints its path. When standard input ends — closed on purpose, or by the kernel because
# the process at its other end was killed — it kills every process registered in `running` and removes the folder.
# KILL at once: the data is thrown away, so there is nothing to save.
set -u

# Ctrl-C reaches a whole terminal; this process ends with its standard input and with nothing else.
trap '' INT TERM HUP
umask 077

directory=$(mktemp -d "$1/sandgate-devcluster.XXXXXX") || exit 1
mkdir "$directory/running" "$directory/logs"
printf '%s\n' "$directory"
exec >/dev/null

while read -r _; do :; done

# launch.sh registers by renaming into `running`: once that is gone, nothing more can start.
mv "$directory/running" "$directory/closing"
pids=$(cat "$directory"/closing/* 2>/dev/null)
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done

# A process that is going down can still create a file, so wait; a zombie, whom nobody may ever reap, cannot.
is_alive() { kill -0 "$1" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
attempts=0
for pid in $pids; do
  while is_alive "$pid" && [ "$attempts" -lt 100 ]; do
    sleep 0.05
    attempts=$((attempts + 1))
  done
done
rm -rf "$directory"
