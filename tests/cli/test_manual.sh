#!/bin/bash
# test_manual.sh - the manual page and the help name the same commands, networks and options, and say of the same options that a value
# follows.

# shellcheck source=SCRIPTDIR/common.sh
repository=$(realpath "$(dirname "$0")/../..")
source "$(dirname "$0")/common.sh"

cat >compare.py <<'PY'
"""compare.py VPPS MANUAL names|options: fails unless help and manual have the same."""
import re, subprocess, sys

program, manual, what = sys.argv[1:]

def help_of(*arguments):
    text = subprocess.run([program, *arguments, '--help'], capture_output=True, text=True, check=True).stdout
    if '--help-engine' not in text: return text
    return text + subprocess.run([program, *arguments, '--help-engine'], capture_output=True, text=True, check=True).stdout

overview = help_of()
page = open(manual, encoding='utf-8').read()
named = lambda text: re.findall(r'^  ([a-z][\w-]*)(?: .*)?$', text, re.M)
of_commands, of_networks = overview.split('\nNetworks:\n')
commands, networks = named(of_commands), named(of_networks)
if what == 'names':
    shown, documented = set(commands + networks), {n for line in re.findall(r'^\.It (Cm .*)$', page, re.M) for n in re.findall(r'Cm ([\w-]+)', line)}
else:
    takes = [c for c in commands if re.search(rf'^  {c} .*NETWORK', of_commands, re.M)]
    texts = [help_of(c) for c in commands] + [help_of(c, n) for c in takes for n in networks]
    shown = {(name, bool(value)) for text in texts for name, value in re.findall(r'^  (?:-., |    )--([\w-]+)(\[?=)?', text, re.M)}
    lines = re.findall(r'^\.It (Fl .*)$', page, re.M)
    shown -= {('help', False), ('help-engine', False), ('usage', False)}  # of every command; the manual has them before its lists
    documented = {(name, bool(re.search(' (Ar|Cm) ', line))) for line in lines for name in re.findall(r'Fl -([a-z][\w-]+)', line)}
assert len(shown) > 20, shown
print('the manual lacks', sorted(shown - documented), 'and the help', sorted(documented - shown))
sys.exit(shown != documented)
PY
same() { python3 compare.py "$vpps" "$repository/doc/vpps.1" "$1"; }
check "commands and networks" same names
check "options" same options
sed '/^\.It Fl -svg/d' "$repository/doc/vpps.1" >less.1
check "one that the manual lacks is found" sh -c "! python3 compare.py '$vpps' less.1 options && python3 compare.py '$vpps' less.1 names"
summary
