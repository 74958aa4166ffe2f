import type { Portico } from '#sdk/client.ts'
import { clientOf, formOf } from './call-operation.ts'
import { exitCodes } from './exit-codes.ts'
import type { Options } from './input.ts'
import { printable } from './print.ts'
import { type Terminal, UsageError } from './terminal.ts'

/** `portico chat <question>`: the plan and the tools as they come, the answer, and what is recommended. */

type ChatInput = Parameters<Portico['chat']['stream']>[0]
type ChatEvent = ReturnType<Portico['chat']['stream']> extends AsyncGenerator<infer Event> ? Event : never

export async function chat(terminal: Terminal, options: Options, words: readonly string[]): Promise<number> {
  const query = words.join(' ').trim()
  if (query === '') throw new UsageError('Ask something, such as: portico chat "what do i hold"')
  const client = clientOf(terminal, options)
  const input = {
    query,
    ...(typeof options.thread === 'string' && { thread_id: options.thread }),
    ...(typeof options.agent === 'string' && { agent: options.agent }),
  } as ChatInput
  const print = formOf(options) === 'table' ? linesOf(terminal) : jsonOf(terminal)
  let chatId = ''
  try {
    for await (const event of client.chat.stream(input, { signal: terminal.signal })) {
      if (event.event === 'meta') chatId = event.data.chat_id
      print(event)
    }
  } catch (error) {
    // Leaving stops the answer, so that it costs no more.
    if (terminal.signal.aborted && chatId !== '') await stop(terminal, client, chatId)
    throw error
  }
  if (formOf(options) === 'table') await showResults(terminal, client, chatId)
  return exitCodes.success
}

async function stop(terminal: Terminal, client: Portico, chatId: string): Promise<void> {
  await client.chat.cancel({ chat_id: chatId }).catch(() => undefined)
  terminal.err('\nportico: the answer was stopped\n')
}

const jsonOf = (terminal: Terminal) => (event: ChatEvent) => terminal.out(`${JSON.stringify(event)}\n`)

/** The answer alone goes to `out`; texts come from strangers, so no character of theirs may steer the terminal. */
function linesOf(terminal: Terminal): (event: ChatEvent) => void {
  const note = (text: string) => terminal.err(`${printable(text)}\n`)
  return ({ event, data }) => {
    if (event === 'planning') note(`· ${data.data.text}`)
    else if (event === 'tool_call') note(`→ ${data.data.name} ${JSON.stringify(data.data.arguments)}`)
    else if (event === 'tool_response') note(`← ${data.data.name} ${data.type}`)
    else if (event === 'chunk') terminal.out(data.text.split('\n').map(printable).join('\n'))
    else if (event === 'done') {
      terminal.out('\n')
      note(`${data.status}, ${data.credits_used} credits used, ${data.credits_remaining} left`)
    }
  }
}

/** Files with their links, and what is recommended. */
async function showResults(terminal: Terminal, client: Portico, chatId: string): Promise<void> {
  const messages = await client.chat.thread({ thread_id: chatId }, { signal: terminal.signal })
  const own = messages.filter(({ chat_id }) => chat_id === chatId)
  for (const { name, size, url } of own.flatMap(({ files }) => files))
    terminal.out(`\n${printable(name)}, ${size} bytes\n  ${printable(url)}\n`)
  const open = own.flatMap(({ recommendations }) => recommendations.filter(({ status }) => status === 'open'))
  for (const { id, title, detail } of open) {
    terminal.out(`\n${printable(title)}\n  ${printable(detail)}\n`)
    terminal.out(`  portico chat decide ${chatId} ${id} --status accepted\n`)
  }
}
