#!/bin/bash
# test_completion.sh - the scripts of `vpps completion`, each asked by its shell.

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

for shell in bash zsh; do
    check "completion $shell" exits 0 "$vpps" completion $shell
    cp out vpps.$shell
done
ln -s "$vpps" vpps # the scripts ask the program that the command line names
PATH=$PWD:$PATH
check "the options offered are those of --help" python3 - "$vpps" <<'PY'
import re, subprocess, sys
def vpps(*arguments): # only some commands have --help-engine
    return subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, check='--help-engine' not in arguments).stdout
for command in ('train', 'eval', 'predict', 'generate', 'export', 'plan', 'kernel', 'tune', 'cell'):
    for network in ('tree-lstm', 'lstm-nmt', 'lattice-lstm', 'bilstm-tagger', 'lstm-lm-fixed'):
        names = [n for part in ('--help', '--help-engine') for n in re.findall(r'(?m)^  (?:-., |    )--([a-z-]+=?)', vpps(command, network, part))]
        offered = vpps('completion', 'words', '--', command, network, '-').splitlines()
        words = [line[2:].split('\t')[0] for line in offered]
        assert len(names) > 5 and sorted({'help', *names} - {'help-engine'}) == sorted(words), (names, words)
PY
check "no shell" fails_with 2 "expected bash or zsh" "$vpps" completion
check "a word too many" fails_with 2 "'zsh': too many arguments" "$vpps" completion bash zsh
check "another shell" fails_with 2 "found 'csh'" "$vpps" completion csh

# completes SHELL WORDS EXPECTED...: the words that WORDS, of which the last is cut short, may become are these.
completes() {
    local shell=$1 line=$2
    shift 2
    "complete_$shell" "$line" | sort >completed
    printf '%s\n' "$@" | sort | cmp -s - completed || { echo "$line:"; cat completed; return 1; }
}

complete_bash() {
    bash --norc -c '
        source ./vpps.bash
        IFS=" " read -r -a COMP_WORDS <<< "${1//=/ = }"
        [[ $1 == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _vpps 2> /dev/null
        printf "%s\n" "${COMPREPLY[@]}"' - "$1"
}

touch model-one.ckpt blocks.txt text.txt
check "bash: a command" completes bash "vpps tr" train
check "bash: a network" completes bash "vpps train tree-lstm-" tree-lstm-2type
check "bash: networks" completes bash "vpps eval lattice-" lattice-gru lattice-lstm
check "bash: actions" completes bash "vpps cache " clear list path
check "bash: an option" completes bash "vpps train tree-lstm --hid" "--hidden="
check "bash: options" completes bash "vpps train tree-lstm --lr" "--lr=" "--lr-decay=" "--lr-every=" "--lr-of=" "--lr-schedule="
check "bash: a network's own" completes bash "vpps train lstm-nmt --att" --attention
check "bash: but not another's" completes bash "vpps train lstm-lm --att" ""
check "bash: nor another command's" completes bash "vpps eval tree-lstm --hid" ""
check "bash: nor those of other networks, of a name that another command has for all" completes bash "vpps train tree-lstm --max-w" ""
check "bash: for which that command has it" completes bash "vpps generate lstm-lm --max-w" "--max-words="
check "bash: a device" completes bash "vpps train rvnn --device c" cpu cuda
check "bash: words or a file" completes bash "vpps train rvnn --class-weights b" balanced blocks.txt
check "bash: a file to predict" completes bash "vpps predict rvnn --model model-one.ckpt tex" text.txt
check "bash: a file to measure" completes bash "vpps eval rvnn --json tex" text.txt
check "bash: no file to train" completes bash "vpps train rvnn tex" ""
check "bash: an option of a command without a network" completes bash "vpps doctor --j" --json
check "bash: an option's words" completes bash "vpps train rvnn --optimizer ada" adagrad adam adamw
check "bash: the words of this command's option" completes bash "vpps train rvnn --precision " auto bf16 bf16x3 fp32
check "bash: and of another command's of that name" completes bash "vpps export rvnn --precision " bf16 fp32 int8
check "bash: files of a letter's option" completes bash "vpps eval rvnn -m model-o" model-one.ckpt
check "bash: words after =" completes bash "vpps train rvnn --optimizer=ada" adagrad adam adamw
check "bash: files" completes bash "vpps eval rvnn --model model-o" model-one.ckpt
check "bash: files after =" completes bash "vpps eval rvnn --model=model-o" model-one.ckpt

# zsh completes on a terminal only: a line is typed there, and then a tab, and what stands there then.
typed() { # typed LINE EXPECTED
    python3 - "$1" "$2" <<'PY'
import os, pty, re, select, sys, time
line, expected = sys.argv[1:]
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM='dumb', PS1='> ', HOME=os.getcwd(), ZDOTDIR=os.getcwd(), PATH=f'{os.getcwd()}:{os.environ["PATH"]}')
    os.execvp('zsh', ['zsh', '-f', '-i'])
text = ''
def read_until(what, seconds=120):
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
send("autoload -Uz compinit && compinit -u -D && . ./vpps.zsh && unsetopt prompt_cr && print rea''dy\n")
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
if command -v zsh >/dev/null; then
    check "zsh: it can be read" zsh -n vpps.zsh
    check "zsh: a command" typed "vpps trai" "vpps train "
    check "zsh: a network" typed "vpps train tree-lstm-" "tree-lstm-2type "
    check "zsh: an action" typed "vpps cache cl" "clear "
    check "zsh: an option" typed "vpps train tree-lstm --hid" "--hidden="
    check "zsh: a network's own" typed "vpps train lstm-nmt --att" "--attention"
    check "zsh: an option of a command without a network" typed "vpps doctor --js" "--json"
    check "zsh: a word of this command's option" typed "vpps train rvnn --precision=bf16x" "=bf16x3 "
    check "zsh: a file to predict" typed "vpps predict rvnn --model=model-one.ckpt tex" "text.txt"
    check "zsh: a word" typed "vpps train rvnn --optimizer=mom" "=momentum"
    check "zsh: a file" typed "vpps eval rvnn --model=model-o" "model-one.ckpt"
else
    skip "zsh" "it is not installed" 11
fi

summary
