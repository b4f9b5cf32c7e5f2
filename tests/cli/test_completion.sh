#!/bin/bash
# test_completion.sh - doc/vpps.bash and doc/vpps.zsh, each by its shell on a terminal: a line is typed, and then a tab.

repository=$(realpath "$(dirname "$0")/../..")
# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

ln -s "$vpps" vpps # the scripts ask the program that the command line names
mkdir zsh
cp "$repository/doc/vpps.bash" .
cp "$repository/doc/vpps.zsh" zsh/_vpps
touch model-one.ckpt text.txt
typed() { # typed SHELL LINE EXPECTED: what stands there after the tab
    python3 - "$@" <<'PY'
import os, pty, select, sys, time
shell, line, expected = sys.argv[1:]
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM='dumb', PS1='> ', HOME=os.getcwd(), ZDOTDIR=os.getcwd(), PATH=f'{os.getcwd()}:{os.environ["PATH"]}')
    os.execvp(shell, [shell, *(['--norc', '-i'] if shell == 'bash' else ['-f', '-i'])])
text = ''
def read_until(what, seconds=20):
    global text
    end = time.time() + seconds
    while what not in text and time.time() < end:
        if select.select([fd], [], [], 0.1)[0]:
            text += os.read(fd, 65536).decode(errors='replace').replace('\a', '')
    return what in text
def send(keys):
    global text
    text = ''
    os.write(fd, keys.encode())
send({'bash': ". ./vpps.bash && echo rea''dy\n",
      'zsh': "fpath=(./zsh $fpath); autoload -Uz compinit && compinit -u -D && unsetopt prompt_cr && print rea''dy\n"}[shell])
assert read_until('ready'), text
read_until('> ', 1)
send(line + '\t')
found = read_until(expected)
os.close(fd)
os.waitpid(pid, 0)
if not found:
    print(f'{line}: {text!r} instead of {expected!r}')
    sys.exit(1)
PY
}
for shell in bash zsh; do
    if ! command -v $shell >/dev/null; then
        skip "$shell" "it is not installed" 7
        continue
    fi
    check "$shell: a command" typed $shell "vpps trai" "vpps train "
    check "$shell: a network" typed $shell "vpps train tree-lstm-" "tree-lstm-2type "
    check "$shell: a network's own option" typed $shell "vpps train lstm-nmt --att" "--attention "
    check "$shell: an option before its value" typed $shell "vpps train --wav" "--waves="
    check "$shell: an option of a command without a network" typed $shell "vpps doctor --js" "--json "
    check "$shell: a file" typed $shell "vpps predict --model model-o" "model-one.ckpt "
    check "$shell: a file after =" typed $shell "vpps predict rvnn --model=model-o" "model-one.ckpt "
done

summary
