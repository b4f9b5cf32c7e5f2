#!/usr/bin/env bash
# clang-tidy on the given files, with the compiler flags FLAGS, without its count of what it does not report. Clean files are remembered in
# the folder TIDY_CACHE. A file is checked again after a change of its preprocessed text, of a macro that it sees, of the flags, of clang-tidy
# and its checks, or of any comment that clang-tidy obeys. Line numbers, blank lines and other comments may change.
set -uo pipefail

read -r -a flags <<< "${FLAGS:-}"
status=0 common=$(clang-tidy --version; clang --version; cat .clang-tidy "$0"; grep -rhE 'NOLINT|=[[:space:]]*\*/' include src models)
for file in "$@"; do
    text=$(clang -E -dD "${flags[@]}" "$file" 2>&1 | sed -E 's/^# [0-9]+ ("[^"]*").*/# \1/; /^[[:space:]]*$/d')
    key=$TIDY_CACHE/$(sha256sum <<< "$file ${flags[*]} $common $text" | cut -d ' ' -f 1)
    if [ -e "$key" ]; then touch "$key" && continue; fi
    clang-tidy --quiet "$file" -- "${flags[@]}" 2>&1 | sed '/^[0-9]* warnings\{0,1\} generated\.$/d'
    if [ "${PIPESTATUS[0]}" -eq 0 ]; then : > "$key"; else status=1; fi
done
exit $status
