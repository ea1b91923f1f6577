#!/usr/bin/env bash
# Puts real Prometheus, promtool, Alertmanager and amtool under FOLDER/usr/bin, for the tests.
#
#   tests/tools/fetch_servers.sh FOLDER
#
# They are the distribution's own packages, unpacked: nothing is installed, no service starts, no
# root is needed, and apt's lists of the machine stay as they are. Where apt cannot deliver, the
# reason is printed and the exit code is still 0: the tests that need a server then skip and say so.
set -euo pipefail

folder=$1
bin=$folder/usr/bin

versions() {
  "$bin/prometheus" --version 2>&1 | head -n 1
  "$bin/promtool" --version 2>&1 | head -n 1
  "$bin/prometheus-alertmanager" --version 2>&1 | head -n 1
}

cannot() {
  printf 'spark-watch: NO REAL PROMETHEUS AND ALERTMANAGER FOR THE TESTS: %s\n' "$1" >&2
  exit 0
}

if [[ -x $bin/prometheus && -x $bin/promtool && -x $bin/prometheus-alertmanager ]]; then
  versions
  exit 0
fi

command -v apt-get >/dev/null || cannot "this machine has no apt"
command -v dpkg-deb >/dev/null || cannot "this machine has no dpkg"

mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/debs"
root=$(cd "$folder" && pwd)
apt=(apt-get -q -o "Dir::State::Lists=$root/apt/lists" -o "Dir::Cache=$root/apt/cache"
  -o APT::Sandbox::User=root)

log=$root/apt/log
echo "spark-watch: fetching Prometheus and Alertmanager into $folder"
"${apt[@]}" update >"$log" 2>&1 || cannot "apt-get update failed: $(tail -n 1 "$log")"
(cd "$root/debs" && "${apt[@]}" download prometheus prometheus-alertmanager) >"$log" 2>&1 ||
  cannot "apt-get download failed: $(tail -n 1 "$log")"
# A package of its own in newer releases, a part of prometheus in older ones.
(cd "$root/debs" && "${apt[@]}" download promtool) >>"$log" 2>&1 || true

for package in "$root"/debs/*.deb; do
  dpkg-deb --extract "$package" "$root" || cannot "$package did not unpack"
done
rm -rf "$root/apt" "$root/debs"
versions
