#compdef vpps
# zsh completion of vpps: commands and networks from `vpps --help`, options from `vpps COMMAND [NETWORK] --help`, else names of files.
local vpps=${(Q)words[1]/#\~\//$HOME/}
local -a line=("${(@)words[2,CURRENT < 4 ? CURRENT - 1 : 3]}") names
[[ $line[2] == -* ]] && shift -p line
if [[ $PREFIX == -*=* ]]; then
    compset -P '*='
elif [[ $PREFIX == -* ]]; then
    names=(${(f)"$({ $vpps $line --help; $vpps $line --help-engine } 2> /dev/null |
        sed -nE 's/^  (-., |    )(--[a-z-]+=?).*/\2/p')"})
elif (( CURRENT == 2 )); then
    names=(${(f)"$($vpps --help 2> /dev/null | sed -nE '/^Commands/,/^Networks/s/^  ([a-z]+) .*/\1/p')"})
elif (( CURRENT == 3 )) && [[ "$($vpps $line --help 2> /dev/null)" == *NETWORK* ]]; then
    names=(${(f)"$($vpps --help 2> /dev/null | sed -nE '/^Networks/,$s/^  ([a-z][a-z0-9-]+) .*/\1/p')"})
fi
compadd -S '' -- ${(M)names:#*=}
compadd -- ${names:#*=}
(( compstate[nmatches] )) || _files
