import type { Portico } from '#sdk/client.ts'
import { createAnswerWriter } from './answer-writer.ts'
import { printable } from './cell-text.ts'
import { commands } from './commands.ts'
import { noteText, progressLine } from './progress-line.ts'
import type { Terminal } from './terminal.ts'

export type ChatEvent =
  ReturnType<Portico['chat']['stream']> extends AsyncGenerator<infer Event> ? Event : never

const columnsMin = 20

export type ChatScreen = ReturnType<typeof chatScreen>

/** Only the answer goes to `out`. Texts come from strangers, so none of their characters may control the terminal. */
export function chatScreen(terminal: Terminal) {
  const { out, err, isInteractive, width } = terminal
  const answer = createAnswerWriter(
    out,
    width === undefined || width < columnsMin ? Number.POSITIVE_INFINITY : width,
  )
  /** True while the last line of the answer on the screen has no line break yet. */
  let isOpen = false
  const progress = progressLine(terminal)
  const endLine = (): boolean => {
    const wasOpen = answer.end()
    isOpen = false
    return wasOpen
  }
  /** A note begins on a line of its own; where the answer goes elsewhere, no line break is added to it. */
  const leaveLine = (): void => {
    if (!isInteractive || !isOpen) return
    if (width === undefined) err('\n')
    else answer.end()
    isOpen = false
  }
  return {
    /** Prints a note next to the answer, on a separate line if both go to one screen. */
    note(text: string) {
      progress.end()
      leaveLine()
      err(`${noteText(text, terminal)}\n`)
    },
    /** Shows what is being done on one line, which the next text replaces. */
    progress(text: string) {
      leaveLine()
      progress.show(text)
    },
    endProgress: progress.end,
    say(text: string) {
      progress.end()
      const lines = text.split('\n').map(printable)
      // A note has already broken the line of the answer, so the line break that begins the next text is left out.
      const isBroken = isInteractive && !isOpen && lines.length > 1 && lines[0] === ''
      const rest = (isBroken ? lines.slice(1) : lines).join('\n')
      if (rest === '') return
      answer.write(rest)
      isOpen = !rest.endsWith('\n')
    },
    endLine,
  }
}

const operations = new Set(commands.map(({ name }) => name))

/** The steps of a plan; the event of a tool call has a note of its own, and the end of the plan needs none. */
export function planStep({ event, data }: ChatEvent): string | undefined {
  if (event === 'tool_call') return `→ ${callText(data.data.name, data.data.arguments)}`
  if (event === 'tool_response')
    return data.type === 'error' ? `← ${data.data.name} failed: ${failureText(data.data.output)}` : undefined
  if (event !== 'planning' || data.v4_event === 'plan_finished') return undefined
  return operations.has(data.data.text.replaceAll(' ', '_')) ? undefined : `· ${data.data.text}`
}

const valueText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
const callText = (name: string, input: object): string =>
  [name, ...Object.entries(input).map(([field, value]) => `${field}=${valueText(value)}`)].join(' ')

function failureText(output: unknown): string {
  const { code, message } = Object(output) as { code?: unknown; message?: unknown }
  return [code, message].filter((part) => typeof part === 'string').join(', ')
}

export const creditsText = (used: number, left: number): string =>
  `${used} ${used === 1 ? 'credit' : 'credits'} used, ${left} left`
