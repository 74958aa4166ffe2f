import { commands } from './commands.ts'

const operations = new Map(
  commands
    .filter(({ group }) => group === 'chat')
    .map(({ verb, fields }) => [
      verb,
      {
        ids: fields.filter(({ isPath }) => isPath).length,
        flags: fields.filter(({ isPath }) => !isPath).map(({ flag }) => `--${flag}`),
      },
    ]),
)
/** Options before a command or a question whose value is the next word. */
const withValue = ['--thread', '--agent', '--base-url', '--retries']

/**
 * Returns whether the words are a question to the chat, although it may begin with the name of an operation. What an
 * operation takes are ids, which have a digit, options of its own or a document, so `chat cancel my order` and `chat
 * files please` are questions.
 */
export function isQuestion(words: readonly string[]): boolean {
  const start = firstWord(words, 0)
  if (words[start] !== 'chat') return false
  const [verb, ...rest] = words.slice(firstWord(words, start + 1))
  if (verb === undefined) return false
  const operation = operations.get(verb)
  if (operation === undefined) return true
  const isDocument = (word: string, at: number): boolean => rest[at - 1] === '--json' && /^[@{]/.test(word)
  const isOwn = (word: string): boolean => operation.flags.includes(word.split('=', 1)[0]!)
  if (rest.some(isOwn) || rest.some(isDocument)) return false
  const end = rest.findIndex((word) => word.startsWith('-'))
  const given = end < 0 ? rest : rest.slice(0, end)
  return given.length > operation.ids || given.some((word) => !/\d/.test(word))
}

function firstWord(words: readonly string[], from: number): number {
  let at = from
  while (words[at]?.startsWith('-')) at += withValue.includes(words[at]!) ? 2 : 1
  return at
}
