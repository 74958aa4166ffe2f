import type { Portico } from '#sdk/client.ts'
import { printable } from './answer-text.ts'
import { clientOf, formOf } from './call-operation.ts'
import { commands } from './commands.ts'
import { exitCodes } from './exit-codes.ts'
import type { Options } from './operation-input.ts'
import { type Terminal, UsageError } from './terminal.ts'

/** `portico chat <question>` prints the plan and the tools as they arrive, then the answer, and what it recommends. */

type ChatInput = Parameters<Portico['chat']['stream']>[0]
type ChatEvent = ReturnType<Portico['chat']['stream']> extends AsyncGenerator<infer Event> ? Event : never

/** How long a person who interrupts an answer waits at most for a gateway that does not stop it. */
const stopMs = 5_000

export async function chat(terminal: Terminal, options: Options, words: readonly string[]): Promise<number> {
  const query = words.join(' ').trim()
  if (query === '') throw new UsageError('Ask something, such as: portico chat "what do i hold"')
  const client = clientOf(terminal, options)
  const input = {
    query,
    ...(typeof options.thread === 'string' && { thread_id: options.thread }),
    ...(typeof options.agent === 'string' && { agent: options.agent }),
  } as ChatInput
  const isTable = formOf(options) === 'table'
  const screen = screenOf(terminal)
  const print = isTable ? linesOf(terminal, screen) : jsonOf(terminal)
  let chatId = ''
  try {
    const follow = {
      signal: terminal.signal,
      onLost: () => screen.note('the connection was lost; the answer goes on when it is back'),
    }
    for await (const event of client.chat.stream(input, follow)) {
      if (event.event === 'meta') chatId = event.data.chat_id
      print(event)
    }
  } catch (error) {
    const isEnded = screen.endLine()
    // Ctrl-C makes the terminal print ^C; unless `endLine` has just ended that line, a line break is still missing.
    if (terminal.signal.aborted && terminal.isInteractive && !isEnded) terminal.err('\n')
    // A person who leaves stops the answer, so that the answer costs no more credits.
    if (terminal.signal.aborted && chatId !== '') await stop(client, chatId, screen)
    throw error
  }
  if (isTable) await showResults(terminal, client, chatId)
  return exitCodes.success
}

async function stop(client: Portico, chatId: string, screen: Screen): Promise<void> {
  const isStopped = await client.chat
    .cancel({ chat_id: chatId }, { signal: AbortSignal.timeout(stopMs) })
    .then(
      () => true,
      () => false,
    )
  screen.note(
    isStopped ? 'the answer was stopped' : 'you have left; the answer ends by itself without a listener',
  )
}

const jsonOf = (terminal: Terminal) => (event: ChatEvent) => terminal.out(`${JSON.stringify(event)}\n`)

const columnsMin = 20
const columnsUnknown = 100

type Screen = ReturnType<typeof screenOf>
const dim = (text: string): string => `\u001b[2m${text}\u001b[22m`

/** Only the answer goes to `out`. Texts come from strangers, so none of their characters may control the terminal. */
function screenOf({ out, err, isInteractive, columns = 0, env }: Terminal) {
  // Some terminals have no size, and report 0.
  const width = columns < columnsMin ? columnsUnknown : columns
  /** True while the last line of the answer on the screen has no line break yet. */
  let isOpen = false
  const cut = (text: string): string =>
    isInteractive && text.length >= width ? `${text.slice(0, width - 2)}…` : text
  const shown = isInteractive && !env.NO_COLOR ? dim : (text: string) => text
  return {
    /** Prints a note next to the answer, on a separate line if both go to one screen. */
    note(text: string) {
      err(`${isInteractive && isOpen ? '\n' : ''}${shown(cut(printable(text)))}\n`)
      if (isInteractive) isOpen = false
    },
    say(text: string) {
      const lines = text.split('\n').map(printable)
      // A note has already broken the line of the answer, so the line break that begins the next text is left out.
      const isBroken = isInteractive && !isOpen && lines.length > 1 && lines[0] === ''
      const rest = (isBroken ? lines.slice(1) : lines).join('\n')
      if (rest === '') return
      out(rest)
      isOpen = !rest.endsWith('\n')
    },
    endLine(): boolean {
      const wasOpen = isOpen
      if (wasOpen) out('\n')
      isOpen = false
      return wasOpen
    },
  }
}

const operations = new Set(commands.map(({ name }) => name))

function linesOf(terminal: Terminal, screen: Screen): (event: ChatEvent) => void {
  let threadId = ''
  return ({ event, data }) => {
    if (event === 'meta') threadId = data.thread_id
    else if (event === 'planning') {
      const isCall = operations.has(data.data.text.replaceAll(' ', '_'))
      // The event of a tool call prints a note of its own, and the end of the plan needs no note.
      if (data.v4_event !== 'plan_finished' && !isCall) screen.note(`· ${data.data.text}`)
    } else if (event === 'tool_call') screen.note(`→ ${callText(data.data.name, data.data.arguments)}`)
    else if (event === 'tool_response') {
      if (data.type === 'error') screen.note(`← ${data.data.name} failed: ${failureText(data.data.output)}`)
    } else if (event === 'chunk') screen.say(data.text)
    else if (event === 'done') {
      screen.endLine()
      const credits = `${data.credits_used} ${data.credits_used === 1 ? 'credit' : 'credits'} used`
      screen.note(`${data.status}, ${credits}, ${data.credits_remaining} left`)
      if (terminal.isInteractive) screen.note(`go on with: portico chat --thread ${threadId} "..."`)
    }
  }
}

const valueText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
const callText = (name: string, input: object): string =>
  [name, ...Object.entries(input).map(([field, value]) => `${field}=${valueText(value)}`)].join(' ')

function failureText(output: unknown): string {
  const { code, message } = Object(output) as { code?: unknown; message?: unknown }
  return [code, message].filter((part) => typeof part === 'string').join(', ')
}

async function showResults(terminal: Terminal, client: Portico, chatId: string): Promise<void> {
  const messages = await client.chat.thread({ thread_id: chatId }, { signal: terminal.signal })
  const own = messages.filter(({ chat_id }) => chat_id === chatId)
  for (const { name, size, url } of own.flatMap(({ files }) => files))
    terminal.out(`\n${printable(name)}, ${size} bytes\n  ${printable(url)}\n`)
  const open = own.flatMap(({ recommendations }) => recommendations.filter(({ status }) => status === 'open'))
  for (const { id, title, detail, action } of open) {
    // The detail of a recommendation has one line for each argument of its operation.
    const lines = [
      ...detail.split('\n'),
      ...(action ? [`Operation: ${action.operation}`, `Valid until: ${action.expires_at}`] : []),
    ]
    terminal.out(
      `\nRecommended: ${printable(title)}\n${lines.map((line) => `  ${printable(line)}\n`).join('')}`,
    )
    for (const status of ['accepted', 'declined'])
      terminal.out(`  portico chat decide ${chatId} ${id} --status ${status}\n`)
  }
}
