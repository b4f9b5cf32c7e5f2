#!/usr/bin/env bash
# The Python package's types, and its tests that need large packages from the index: a part of check-package.
VPPS_TEST_PYTHON=packages exec "$(dirname "$0")/test_python.sh"
