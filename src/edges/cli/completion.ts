import type { Command } from './commands.ts'

export const shells = ['bash', 'zsh'] as const

export function completionScript(shell: (typeof shells)[number]): string {
  if (shell === 'zsh')
    return `#compdef portico
_portico() {
  local -a candidates
  candidates=("\${(@f)$(portico complete -- "\${(@)words[2,$CURRENT]}")}")
  compadd -- $candidates
}
compdef _portico portico
`
  return `_portico() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    [ -n "$line" ] && COMPREPLY+=("$line")
  done < <(portico complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}")
}
complete -F _portico portico
`
}

const everyFlag = ['--json', '--jsonl', '--base-url', '--idempotency-key', '--help']

/** Returns the words that may complete the last word of the command line. */
export function candidates(
  words: readonly string[],
  commands: readonly Command[],
  builtins: readonly string[],
) {
  const current = words.at(-1) ?? ''
  const [group, verb] = words
  const previous = words.at(-2)
  return matching().filter((word) => word.startsWith(current))

  function matching(): string[] {
    if (words.length <= 1) return [...new Set(commands.map((each) => each.group)), ...builtins].sort()
    const ofGroup = commands.filter((each) => each.group === group)
    if (words.length === 2) return group === 'completion' ? [...shells] : ofGroup.map((each) => each.verb)
    const command = ofGroup.find((each) => each.verb === verb)
    if (!command) return []
    const asked = command.fields.find(({ flag }) => previous === `--${flag}`)
    if (asked && asked.choices.length > 0) return [...asked.choices]
    const own = command.fields.filter(({ isPath }) => !isPath).map(({ flag }) => `--${flag}`)
    return [...own, ...(command.waitSeconds === undefined ? [] : ['--wait', '--timeout']), ...everyFlag]
  }
}
