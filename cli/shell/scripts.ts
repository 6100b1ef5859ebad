/**
 * What `countersign completion` prints. Each script calls `countersign __complete` with the words of the line. The answer has
 * the form that kubectl expects of plugins: lines of candidate, tab, description, then `:4`, or `:0` for names of files.
 */
export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

const bash = `# bash completion of countersign
_countersign() {
  local line directive=0
  COMPREPLY=()
  while IFS= read -r line; do
    case "$line" in
      :*) directive="\${line#:}" ;;
      *) COMPREPLY+=("\${line%%$'\\t'*}") ;;
    esac
  done < <("\${COMP_WORDS[0]}" __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ \${#COMPREPLY[@]} -eq 0 && $directive == 0 ]]; then
    local current="\${COMP_WORDS[COMP_CWORD]}"
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "\${current#=}")
  fi
}
complete -F _countersign countersign
`;

const zsh = `#compdef countersign
# zsh completion of countersign
_countersign() {
  local line directive=0
  local -a candidates
  for line in "\${(@f)$("$words[1]" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == :* ]]; then
      directive=\${line#:}
    elif [[ -n $line ]]; then
      candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
    fi
  done
  if (( $#candidates )); then
    _describe countersign candidates
  elif [[ $directive == 0 ]]; then
    _files
  fi
}
if [[ $funcstack[1] == _countersign ]]; then
  _countersign "$@"
else
  compdef _countersign countersign
fi
`;

const fish = `# fish completion of countersign
function __countersign_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] __complete -- $words[2..-1] "$current" 2>/dev/null)
    if test "$lines[-1]" = ':0'
        __fish_complete_path "$current"
    else
        for line in $lines
            string match -q ':*' -- $line; or echo $line
        end
    end
end
complete -c countersign -f -a '(__countersign_complete)'
`;

export const completionScripts: Readonly<Record<Shell, string>> = { bash, zsh, fish };
