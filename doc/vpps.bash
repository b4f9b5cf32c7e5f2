# shellcheck shell=bash
# bash completion of vpps: commands and networks from `vpps --help`, options from `vpps COMMAND [NETWORK] --help`, else names of files.
_vpps() {
    local vpps=${COMP_WORDS[0]/#\~\//$HOME/} word=${COMP_WORDS[COMP_CWORD]} names=
    local line=("${COMP_WORDS[@]:1:COMP_CWORD<3?COMP_CWORD-1:2}")
    [[ ${line[1]-} == -* ]] && line=("${line[0]}")
    if [[ $word == -* ]]; then
        names=$({ "$vpps" "${line[@]}" --help; "$vpps" "${line[@]}" --help-engine; } 2> /dev/null |
            sed -nE 's/^  (-., |    )(--[a-z-]+=?).*/\2/p')
    elif [[ $COMP_CWORD -eq 1 ]]; then
        names=$("$vpps" --help 2> /dev/null | sed -nE '/^Commands/,/^Networks/s/^  ([a-z]+) .*/\1/p')
    elif [[ $COMP_CWORD -eq 2 && $("$vpps" "${line[0]}" --help 2> /dev/null) == *NETWORK* ]]; then
        names=$("$vpps" --help 2> /dev/null | sed -nE '/^Networks/,$s/^  ([a-z][a-z0-9-]+) .*/\1/p')
    fi
    mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
    if [[ ${COMPREPLY[*]} == *= ]]; then compopt -o nospace; fi
}
complete -o bashdefault -o default -F _vpps vpps
