#compdef vpps
# zsh completion of vpps, printed by `vpps completion zsh`. vpps lists the words for the command line up to the cursor.
_vpps() {
    local line
    local -a whole begun
    local -i files failed=1
    for line in ${(f)"$(${(Q)words[1]/#\~\//$HOME/} completion words -- "${(@Q)words[2,CURRENT]}" 2> /dev/null)"}; do
        case $line in
        ($'\t') files=1 ;;
        (*=$'\t'*) begun+=(${line/$'\t'/:}) ;;
        (*) whole+=(${line/$'\t'/:}) ;;
        esac
    done
    [[ $PREFIX == -*=* ]] && compset -P '*='
    _describe word whole -- begun -S '' && failed=0
    (( files )) && _files && failed=0
    return failed
}
if [[ $funcstack[1] == _vpps ]]; then _vpps "$@"; else compdef _vpps vpps; fi
