#!/bin/bash
# test_manual.sh - the manual page and the help name the same commands, networks and options, and of each option the same choices, or that
# a value follows.

# shellcheck source=SCRIPTDIR/common.sh
repository=$(realpath "$(dirname "$0")/../..")
source "$(dirname "$0")/common.sh"

cat >compare.py <<'PY'
"""compare.py VPPS MANUAL names|options: fails unless help and manual have the same. Each help is asked for once, and kept in helps.json.
aligned: unless every line of help is a heading, an option with its text in column 30, or the text's next line, none longer than 79 but for a long option."""
import json, os, re, subprocess, sys

program, manual, what = sys.argv[1:]

helps = json.load(open('helps.json')) if os.path.exists('helps.json') else {}

def help_of(*arguments):
    key = ' '.join(arguments)
    if key not in helps: helps[key] = ask(*arguments)
    return helps[key]

def ask(*arguments):
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
    own = [help_of(c) for c in commands if c not in takes] + [help_of(c, n) for c in takes for n in networks]
    texts = own + [help_of(c) for c in takes]
    # (name, '' or 'value' or its choices, of which FILE is one that is a value)
    kind = lambda value: value.lower() if '|' in value else value and 'value'
    for line in (l for text in own for l in text[re.search(r'^\S.*:$', text, re.M).start():].splitlines() if what == 'aligned'):
        assert line == line.rstrip() and (len(line) <= 79 or re.fullmatch(r' +(-., )?--\S+', line)), line
        assert re.match(r'\S|$|  (-.,|   ) --[a-z]\S*( {2,}(?<=^.{29})\S.*)?$| {29}\S', line), line
    shown = {(name, kind(value)) for text in texts for name, value in re.findall(r'^  (?:-., |    )--([\w-]+)(?:\[?=(\S+))?', text, re.M)}
    shown -= {('help', ''), ('help-engine', '')}  # of every command; the manual has them before its lists
    documented = set()
    for line in re.findall(r'^\.It (Fl .*)$', page, re.M):
        value = re.search(r' (Ar|Cm) (.*)', line)
        kinds = value and (re.sub(' |Ar ', '', value[2]) if value[1] == 'Cm' else 'value') or ''
        documented |= {(name, kinds) for name in re.findall(r'Fl -([a-z][\w-]*)', line)}
json.dump(helps, open('helps.json', 'w'))
assert len(shown) > 20, shown
print('the manual lacks', sorted(shown - documented), 'and the help', sorted(documented - shown))
sys.exit(shown != documented)
PY
same() { python3 compare.py "$vpps" "$repository/doc/vpps.1" "$1"; }
check "commands and networks" same names
in_networks_md() { diff <(sed -n '/^Networks:/,$s/^  \([a-z][a-z0-9-]*\).*/\1/p' help | sort) <(grep -E '^\| `' "$repository/doc/networks.md" | cut -d'|' -f2 | grep -oE '[a-z][a-z0-9-]+' | sort); }
"$vpps" --help >help
check "doc/networks.md has every network" in_networks_md
in_readme() { diff <(sed -n '/^Networks:/,$s/^  \([a-z][a-z0-9-]*\).*/\1/p' help | sort) <(sed -n '/^## Networks/,/^\*\*/s/^    \([a-z0-9, -]*[a-z]\)  .*/\1/p' "$repository/README.md" | tr -d ' ' | tr ',' '\n' | sort); }
check "README.md has every network" in_readme
check "options" same options
check "help is aligned, of every command and network" same aligned
sed '/^\.It Fl -plot/d' "$repository/doc/vpps.1" >less.1
sed 's/^\(\.It Fl -policy Cm\) default |/\1/' "$repository/doc/vpps.1" >fewer.1
check "a choice that the manual lacks is found" sh -c "! python3 compare.py '$vpps' fewer.1 options"
check "one that the manual lacks is found" sh -c "! python3 compare.py '$vpps' less.1 options && python3 compare.py '$vpps' less.1 names"
summary
