import type { Command as Program } from 'commander'
import type { Command } from './commands.ts'

export const shells = ['bash', 'zsh', 'fish'] as const

const scripts: Readonly<Record<(typeof shells)[number], string>> = {
  bash: `_portico() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    [ -n "$line" ] && COMPREPLY+=("$line")
  done < <(portico complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}")
}
complete -F _portico portico
`,
  zsh: `#compdef portico
_portico() {
  local -a candidates
  candidates=("\${(@f)$(portico complete -- "\${(@)words[2,$CURRENT]}")}")
  compadd -- $candidates
}
compdef _portico portico
`,
  fish: `function __portico_complete
  set -l words (commandline -opc) (commandline -ct)
  portico complete -- $words[2..-1]
end
complete -c portico -f -a '(__portico_complete)'
`,
}

export const completionScript = (shell: (typeof shells)[number]): string => scripts[shell]

/** Returns the words that may complete the last word of the command line. */
export function candidates(
  words: readonly string[],
  commands: readonly Command[],
  program: Program,
): string[] {
  const current = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  return matching().filter((word) => word.startsWith(current))

  function matching(): string[] {
    const { command, names } = commandOf(before, program)
    if (names[0] === 'completion') return [...shells]
    const fields = commands.find(({ group, verb }) => group === names[0] && verb === names[1])?.fields
    const asked = fields?.find(({ flag }) => before.at(-1) === `--${flag}`)
    if (asked && asked.choices.length > 0) return [...asked.choices]
    const below = command.createHelp().visibleCommands(command)
    const options = command.createHelp().visibleOptions(command)
    const flags = options.flatMap(({ long }) => long ?? [])
    if (below.length === 0 || current.startsWith('-')) return flags
    return below.map((each) => each.name()).sort()
  }
}

/** The command that the words lead to; options before it, and their values, are passed over. */
function commandOf(words: readonly string[], program: Program): { command: Program; names: string[] } {
  let command = program
  const names: string[] = []
  for (const word of words) {
    const next = command.commands.find((each) => each.name() === word)
    if (!next) continue
    command = next
    names.push(word)
  }
  return { command, names }
}
