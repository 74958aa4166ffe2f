import type { Portico } from '#sdk/client.ts'
import { isJson } from './answer-text.ts'
import { clientOf } from './call-operation.ts'
import { printable } from './cell-text.ts'
import { answerTo, type ChatInput } from './chat-answer.ts'
import { fileText, recommendationText, resultsOf } from './chat-results.ts'
import { type ChatEvent, type ChatScreen, chatScreen, creditsText, planStep } from './chat-screen.ts'
import { dialogue } from './dialogue.ts'
import { exitCodes } from './exit-codes.ts'
import type { Options } from './operation-input.ts'
import { formOf } from './output-form.ts'
import { type Terminal, UsageError } from './terminal.ts'

/** `portico chat <question>` prints the plan and the tools as they arrive, then the answer, and what it recommends. */
export async function chat(terminal: Terminal, options: Options, words: readonly string[]): Promise<number> {
  const query = words.join(' ').trim()
  const isProgram = isJson(formOf(options))
  const client = clientOf(terminal, options)
  const asked = {
    ...(typeof options.thread === 'string' && { thread_id: options.thread }),
    ...(typeof options.agent === 'string' && { agent: options.agent }),
  } as Partial<ChatInput>
  if (query === '') {
    if (terminal.readLine && !isProgram) return dialogue(terminal, client, asked)
    throw new UsageError('Ask something, such as: portico chat "what do i hold"')
  }
  const screen = chatScreen(terminal)
  const print = isProgram ? jsonOf(terminal) : linesOf(terminal, screen)
  const { chatId } = await answerTo({ ...asked, query }, { terminal, client, screen, print })
  if (!isProgram) await showResults(terminal, client, chatId)
  return exitCodes.success
}

const jsonOf = (terminal: Terminal) => (event: ChatEvent) => terminal.out(`${JSON.stringify(event)}\n`)

function linesOf(terminal: Terminal, screen: ChatScreen): (event: ChatEvent) => void {
  let threadId = ''
  return (event) => {
    const step = planStep(event)
    if (step !== undefined) screen.note(step)
    else if (event.event === 'meta') threadId = event.data.thread_id
    else if (event.event === 'chunk') screen.say(event.data.text)
    else if (event.event === 'done') {
      screen.endLine()
      const { status, credits_used, credits_remaining } = event.data
      screen.note(`${status}, ${creditsText(credits_used, credits_remaining)}`)
      if (terminal.isInteractive) screen.note(`go on with: portico chat --thread ${threadId} "..."`)
    }
  }
}

async function showResults(terminal: Terminal, client: Portico, chatId: string): Promise<void> {
  const { files, open } = await resultsOf(client, chatId, terminal.signal)
  for (const file of files) terminal.out(fileText(file))
  for (const each of open) {
    terminal.out(recommendationText(each, terminal, `Recommended: ${printable(each.title)}`))
    for (const status of ['accepted', 'declined'])
      terminal.out(commandText(['portico chat decide', chatId, `${each.id} --status ${status}`], terminal))
  }
}

/** A command that is longer than the screen is continued on the next line, as a shell takes it. */
function commandText(parts: readonly string[], { width = Number.POSITIVE_INFINITY }: Terminal): string {
  const line = `  ${parts.join(' ')}`
  return line.length <= width ? `${line}\n` : `  ${parts.join(' \\\n    ')}\n`
}
