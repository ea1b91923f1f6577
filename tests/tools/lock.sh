#!/usr/bin/env bash
# Writes requirements.txt (what the product needs) and requirements-dev.txt (that and the
# developer's tools) anew from pyproject.toml, every file with the hashes of all its builds.
#
#   tests/tools/lock.sh VENV_WITH_PIP_TOOLS [pip-compile arguments, such as --upgrade]
#
# pip's own configuration is left out on purpose: a mirror, a folder of wheels or a cap that one
# machine has must not decide what everybody installs, nor stand in the files.
set -euo pipefail

compile=("$1/bin/pip-compile" --quiet --generate-hashes --strip-extras --allow-unsafe
  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links "${@:2}")

export PIP_CONFIG_FILE=/dev/null CUSTOM_COMPILE_COMMAND="make lock"
unset PIP_FIND_LINKS PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_CONSTRAINT

"${compile[@]}" --output-file requirements.txt pyproject.toml
"${compile[@]}" --extra dev --output-file requirements-dev.txt pyproject.toml
