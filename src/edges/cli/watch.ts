import { setTimeout as delay } from 'node:timers/promises'
import { PorticoError } from '#sdk/errors.ts'
import { isJson } from './answer-text.ts'
import { clientOf, printAnswer } from './call-operation.ts'
import { isObject } from './cell-text.ts'
import { commands } from './commands.ts'
import { createChangeLines } from './event-line.ts'
import { exitCodes } from './exit-codes.ts'
import { countOf, type Options } from './operation-input.ts'
import { formOf } from './output-form.ts'
import { cut } from './table-text.ts'
import { type Terminal, UsageError } from './terminal.ts'

const taskEvents = 'task.created,task.updated,task.completed,task.failed,task.cancelled'
const clearScreen = '\u001b[2J\u001b[H'

/**
 * `portico watch tasks` prints one line per change, as it happens, over any restart of the gateway. A person sees what
 * comes; a program, which prints JSON, also gets the last events that are stored, unless `--after` says from where.
 */
export async function watchTasks(terminal: Terminal, options: Options): Promise<number> {
  const isProgram = isJson(formOf(options))
  const client = clientOf(terminal, options)
  const after = countOf('--after', options.after)
  let left = countOf('--items', options.items) ?? Number.POSITIVE_INFINITY
  // The time of the gateway, because the clock of this machine may differ.
  const from = isProgram || after !== undefined ? '' : (await client.discovery.health()).time
  const lineOf = createChangeLines()
  let wasOpen = false
  const input = { types: taskEvents, ...(after !== undefined && { after: String(after) }) }
  const events = client.notifications.stream(input, {
    signal: terminal.signal,
    maxReconnects: Number.POSITIVE_INFINITY,
    onLost: () => noteConnection(terminal, 'lost'),
    onOpen: () => {
      if (wasOpen || (terminal.isInteractive && !isProgram))
        noteConnection(terminal, wasOpen ? 'back' : 'first')
      wasOpen = true
    },
  })
  for await (const event of events) {
    if (isProgram) terminal.out(`${JSON.stringify(event)}\n`)
    else if (event.event === 'reset') terminal.err('portico: events in between are no longer stored\n')
    else if (isObject(event.data) && event.data.created_at < from) continue
    else {
      const line = lineOf(event.data)
      if (line === undefined) continue
      terminal.out(`${cut(line, terminal.width ?? Number.POSITIVE_INFINITY)}\n`)
    }
    if (--left <= 0) break
  }
  return exitCodes.success
}

const connectionNotes = {
  first: 'watching; Ctrl-C ends it, --after 0 begins with what is stored',
  lost: 'the connection is lost; watching goes on when the gateway is back',
  back: 'the gateway is back',
}
const noteConnection = (terminal: Terminal, state: keyof typeof connectionNotes): void =>
  terminal.err(`portico: ${connectionNotes[state]}\n`)

/** `portico watch holdings` prints the holdings again whenever they have changed. */
export async function watchHoldings(terminal: Terminal, options: Options): Promise<number> {
  const seconds = Number(options.interval ?? 5)
  if (!(seconds >= 0.2 && seconds <= 3_600)) throw new UsageError('--interval is from 0.2 to 3600 seconds')
  const client = clientOf(terminal, options)
  const form = formOf(options)
  const view = commands.find(({ name }) => name === 'wallets_holdings')?.view
  let left = countOf('--items', options.items) ?? Number.POSITIVE_INFINITY
  let seen = ''
  let isLost = false
  while (!terminal.signal.aborted) {
    const answer = await client.wallets.holdings({}, { signal: terminal.signal }).catch((error: unknown) => {
      // The first read has to succeed: a wrong address is not waited for.
      if (seen === '' || !(error instanceof PorticoError) || !error.retryable) throw error
      return undefined
    })
    if ((answer === undefined) !== isLost) noteConnection(terminal, isLost ? 'back' : 'lost')
    isLost = answer === undefined
    if (answer === undefined) {
      await delay(seconds * 1_000, undefined, { signal: terminal.signal })
      continue
    }
    const state = JSON.stringify(answer.holdings)
    if (state !== seen) {
      if (terminal.isInteractive && form === 'table') terminal.out(clearScreen)
      if (isJson(form)) terminal.out(`${JSON.stringify(answer)}\n`)
      else await printAnswer(terminal, client, { answer, form, view })
      seen = state
      if (--left <= 0) break
    }
    await delay(seconds * 1_000, undefined, { signal: terminal.signal })
  }
  return exitCodes.success
}
