#!/usr/bin/env bash
# Makes JSON schemas of Grafana's dashboards and panels in FOLDER, for the tests.
#
#   tests/tools/fetch_grafana_schema.sh FOLDER
#
# They are generated from the types that Grafana publishes in the npm package @grafana/schema
# (Apache-2.0). Nothing of it becomes part of the project. Where npm cannot deliver, the reason is
# printed and the exit code is still 0: the tests that need a schema then skip and say so.
set -euo pipefail

folder=$1
grafana=13.2.3

cannot() {
  printf 'spark-watch: NO SCHEMA OF GRAFANA FOR THE TESTS: %s\n' "$1" >&2
  exit 0
}

if [[ -f $folder/$grafana.done ]]; then
  echo "spark-watch: schemas of Grafana $grafana"
  exit 0
fi
command -v npm >/dev/null || cannot "this machine has no npm"

mkdir -p "$folder"
cd "$folder"
log=$PWD/log
echo "spark-watch: making schemas of Grafana $grafana in $folder"
[[ -f package.json ]] || echo '{"private": true}' >package.json
npm install --ignore-scripts --no-audit --no-fund --no-save "@grafana/schema@$grafana" \
  ts-json-schema-generator@2.4.0 >"$log" 2>&1 || cannot "npm install failed: $(tail -n 1 "$log")"

types=node_modules/@grafana/schema/dist/types/raw
make_schema() { # FILE TYPE OUTPUT
  node_modules/.bin/ts-json-schema-generator --no-type-check --jsDoc none --functions hide \
    --path "$types/$1" --type "$2" --out "$3.json" >"$log" 2>&1 ||
    cannot "$3: $(tail -n 1 "$log")"
}
make_schema dashboard/x/types.gen.d.ts Dashboard dashboard
for panel in statetimeline timeseries stat table; do
  make_schema "composable/$panel/panelcfg/x/types.gen.d.ts" Options "$panel-options"
done
for panel in statetimeline timeseries table; do
  make_schema "composable/$panel/panelcfg/x/types.gen.d.ts" FieldConfig "$panel-custom"
done
touch "$grafana.done"
