# bash completion of vpps, printed by `vpps completion bash`. vpps lists the words for the command line up to the cursor.
_vpps() {
    local cur=${COMP_WORDS[COMP_CWORD]} word
    [[ $cur == '=' ]] && cur=
    COMPREPLY=()
    while IFS=$'\t' read -r word _; do
        if [[ ! $word ]]; then
            compopt -o filenames 2> /dev/null
            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur")
        elif [[ $word == "$cur"* ]]; then
            COMPREPLY+=("$word")
        fi
    done < <("${COMP_WORDS[0]/#\~\//$HOME/}" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2> /dev/null; fi
}
complete -F _vpps vpps
