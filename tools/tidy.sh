#!/usr/bin/env bash
# clang-tidy on the given files, with the compiler flags FLAGS, without its count of what it does not report.
set -uo pipefail

read -r -a flags <<< "${FLAGS:-}"
clang-tidy --quiet "$@" -- "${flags[@]}" 2>&1 | sed '/^[0-9]* warnings\{0,1\} generated\.$/d'
exit "${PIPESTATUS[0]}"
