import { commands } from './commands.ts'

const operations = new Map(
  commands
    .filter(({ group }) => group === 'chat')
    .map(({ verb, fields }) => [verb, fields.filter(({ isPath }) => isPath).length]),
)
/** Options before a command or a question whose value is the next word. */
const withValue = ['--thread', '--agent', '--base-url', '--retries']

/**
 * Whether the words are a question to the chat, although it may begin with the name of an operation: what an operation
 * takes are ids, which have a digit, so `chat cancel my order` and `chat files please` are questions.
 */
export function isQuestion(words: readonly string[]): boolean {
  const start = firstWord(words, 0)
  if (words[start] !== 'chat') return false
  const at = firstWord(words, start + 1)
  const [verb, ...rest] = words.slice(at)
  if (verb === undefined) return false
  const ids = operations.get(verb)
  if (ids === undefined) return true
  const end = rest.findIndex((word) => word.startsWith('-'))
  const given = end < 0 ? rest : rest.slice(0, end)
  return given.length > ids || given.some((word) => !/\d/.test(word))
}

function firstWord(words: readonly string[], from: number): number {
  let at = from
  while (words[at]?.startsWith('-')) at += withValue.includes(words[at]!) ? 2 : 1
  return at
}
