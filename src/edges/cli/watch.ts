import { setTimeout as delay } from 'node:timers/promises'
import { answerText } from './answer-text.ts'
import { callOperation, clientOf, formOf } from './call-operation.ts'
import { commands } from './commands.ts'
import { exitCodes } from './exit-codes.ts'
import type { Options } from './operation-input.ts'
import { type Terminal, UsageError } from './terminal.ts'

const taskEvents = 'task.created,task.updated,task.completed,task.failed,task.cancelled'
const clearScreen = '\u001b[2J\u001b[H'

/** `portico watch tasks` prints one line per change, as it happens. */
export function watchTasks(terminal: Terminal, options: Options): Promise<number> {
  const command = commands.find(({ name }) => name === 'notifications_stream')
  if (!command) throw new Error('there is no stream of notifications')
  return callOperation(terminal, { command, options: { ...options, types: taskEvents }, positional: [] })
}

/** `portico watch holdings` prints the holdings again whenever they have changed. */
export async function watchHoldings(terminal: Terminal, options: Options): Promise<number> {
  const seconds = Number(options.interval ?? 5)
  if (!(seconds >= 0.2 && seconds <= 3_600)) throw new UsageError('--interval is from 0.2 to 3600 seconds')
  const client = clientOf(terminal, options)
  const form = formOf(options)
  let left = options.items === undefined ? Number.POSITIVE_INFINITY : Number(options.items)
  let seen = ''
  while (!terminal.signal.aborted) {
    const answer = await client.wallets.holdings({}, { signal: terminal.signal })
    const state = JSON.stringify(answer.holdings)
    if (state !== seen) {
      if (terminal.isInteractive && form === 'table') terminal.out(clearScreen)
      terminal.out(form === 'table' ? answerText(answer, form) : `${JSON.stringify(answer)}\n`)
      seen = state
      if (--left <= 0) break
    }
    await delay(seconds * 1_000, undefined, { signal: terminal.signal })
  }
  return exitCodes.success
}
