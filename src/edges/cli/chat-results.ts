import type { Portico } from '#sdk/client.ts'
import { printable, timeText } from './cell-text.ts'
import { wrapped } from './table-text.ts'
import type { Terminal } from './terminal.ts'

/** The files and the recommendations of an answer, as the terminal shows them. */

type Message = Awaited<ReturnType<Portico['chat']['thread']>>[number]
export type Recommendation = Message['recommendations'][number]
type File = Message['files'][number]

/** The files of an answer, and what it recommends that nobody has decided yet. */
export async function resultsOf(
  client: Portico,
  chatId: string,
  signal: AbortSignal,
): Promise<{ files: File[]; open: Recommendation[] }> {
  const messages = await client.chat.thread({ thread_id: chatId }, { signal })
  const own = messages.filter(({ chat_id }) => chat_id === chatId)
  return {
    files: own.flatMap(({ files }) => files),
    open: own.flatMap(({ recommendations }) => recommendations.filter(({ status }) => status === 'open')),
  }
}

export const fileText = ({ name, size, url }: File): string =>
  `\n${printable(name)}, ${size} bytes\n  ${printable(url)}\n`

/** The detail of a recommendation has one line for each argument of its operation. */
export function recommendationText(
  { detail, action }: Recommendation,
  { width = Number.POSITIVE_INFINITY }: Terminal,
  title: string,
): string {
  const lines = [
    ...detail.split('\n'),
    ...(action ? [`Operation: ${action.operation}`, `Valid until: ${timeText(action.expires_at)}`] : []),
  ]
  const shown = lines.flatMap((line) => wrapped(printable(line), width - 2))
  return `\n${wrapped(title, width).join('\n')}\n${shown.map((line) => `  ${line}\n`).join('')}`
}
