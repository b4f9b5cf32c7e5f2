# shellcheck shell=bash
# share NUMBER: whether this run has the check of that number. VPPS_TEST_PART, as 2/3: every third, from the second on; unset: all. Sourced.
share() { [ -z "${VPPS_TEST_PART:-}" ] || [ $(($1 % ${VPPS_TEST_PART#*/})) -eq $((${VPPS_TEST_PART%/*} - 1)) ]; }
