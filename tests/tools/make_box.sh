#!/usr/bin/env bash
# Makes FOLDER a small system of the machine's own distribution, for tests that need a real systemd
# as the first process.
#
#   tests/tools/make_box.sh FOLDER
#
# Nothing of the machine is changed. Where it cannot be made, the reason is printed and the exit code
# is still 0: the tests that need it then skip and say so.
set -euo pipefail

folder=$1

cannot() {
  printf 'spark-watch: NO REAL SYSTEMD FOR THE TESTS: %s\n' "$1" >&2
  exit 0
}

# The log is as old as the system: a change of this script makes a new one.
if [[ -x $folder/usr/bin/systemctl && $folder.log -nt $0 ]]; then
  exit 0
fi

[[ $(id -u) == 0 ]] || cannot "only root can start one"
for program in systemd-nspawn mmdebstrap; do
  command -v "$program" >/dev/null || cannot "no $program here: apt install systemd-container mmdebstrap"
done

sources=
for file in /etc/apt/sources.list.d/{debian,ubuntu}.sources /etc/apt/sources.list; do
  [[ -z $sources && -s $file ]] && sources=$file
done
[[ -n $sources ]] || cannot "no list of package sources under /etc/apt"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")

echo "spark-watch: making a small $suite system in $folder"
mkdir -p "$(dirname "$folder")"
rm -rf "$folder.new"
mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,dbus,procps,python3 \
  "$suite" "$folder.new" "$sources" >"$folder.log" 2>&1 || cannot "mmdebstrap failed: $(tail -n 1 "$folder.log")"
rm -rf "$folder"
mv "$folder.new" "$folder"
