#!/bin/bash
# test_pairs.sh - two or three options of a training run at once do what each does alone; see pairs.py. VPPS names the program (default:
# build/vpps). VPPS_TEST_SCALE=full: many draws.

folder=$(realpath "$(dirname "$0")")
# shellcheck source=SCRIPTDIR/common.sh
source "$folder/common.sh"

draws=4
if [ "${VPPS_TEST_SCALE:-}" = full ]; then draws=200; fi
for seed in $(seq $draws); do
    check "options at once, seed $seed" env PYTHONPATH="$folder" PYTHONDONTWRITEBYTECODE=1 "$python" -S "$folder/pairs.py" "$vpps" "$seed" 1
done

summary
