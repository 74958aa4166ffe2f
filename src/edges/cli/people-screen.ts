import { figureFormulas, summed } from '#kernel/money/figure-format.ts'
import type { Portico } from '#sdk/client.ts'
import { PorticoError } from '#sdk/errors.ts'
import { answerText, isJson } from './answer-text.ts'
import { commands } from './commands.ts'
import { exitCodes } from './exit-codes.ts'
import { inFlags } from './flag-language.ts'
import type { Options } from './operation-input.ts'
import { formOf } from './output-form.ts'
import { wrapped } from './table-text.ts'
import type { Terminal } from './terminal.ts'
import type { View } from './view.ts'

/** What the commands share that put several operations on one screen. */

export type Section = readonly [title: string, lines: string[]]
type Failed = { failed: string }
export const hasFailed = (read: unknown): read is Failed =>
  typeof read === 'object' && read !== null && 'failed' in read

/** A part that cannot be read, such as a venue that is down, is named on the screen, and the others are shown. */
export async function attempt<T>(read: PromiseLike<T>): Promise<T | Failed> {
  try {
    return await read
  } catch (error) {
    if (error instanceof PorticoError && error.status !== 0 && error.status !== 401)
      return { failed: `${error.code}: ${error.detail}` }
    throw error
  }
}

export const viewsByName = new Map(commands.map(({ name, view }) => [name, view]))
export const partViewOf = (name: string, part: string): View | undefined =>
  viewsByName.get(name)?.parts?.[part]

type Screen = { terminal: Terminal; options: Options; answers: Readonly<Record<string, unknown>> }

export function show({ terminal, options, answers }: Screen, lines: () => string[]): number {
  const form = formOf(options)
  if (isJson(form) || form === 'wide')
    terminal.out(
      answerText(answers, form === 'jsonl' ? 'jsonl' : form, {
        width: screenWidth(terminal),
        chains: new Map(),
      }),
    )
  else terminal.out(`${lines().join('\n')}\n`)
  return exitCodes.success
}

export const screenWidth = ({ width }: Terminal): number => width ?? Number.POSITIVE_INFINITY

export const joined = (sections: readonly Section[]): string[] =>
  sections.flatMap(([title, lines], at) => [
    ...(at === 0 ? [] : ['']),
    ...(title === '' ? [] : [`${title}:`]),
    ...lines,
  ])

export const failures = (reads: Readonly<Record<string, unknown>>, width: number): string[] =>
  Object.entries(reads).flatMap(([name, read]) =>
    hasFailed(read) && !read.failed.startsWith('setup_incomplete')
      ? wrapped(`${name.replaceAll('_', ' ')} cannot be read now: ${inFlags(read.failed)}`, width)
      : [],
  )

export async function readVenues(client: Portico, signal: AbortSignal) {
  const call = { signal }
  const [perp_setup_status, perp_orders, spot_venue_orders] = await Promise.all([
    attempt(client.perp.setupStatus({}, call)),
    attempt(client.perp.orders({}, call)),
    attempt(client.spotVenue.orders({}, call)),
  ])
  return { perp_setup_status, perp_orders, spot_venue_orders }
}
export type Venues = Awaited<ReturnType<typeof readVenues>>

/** What lies at the venue: the account of perpetuals, and the coins of the spot side at their market price. */
export function venueWorth({ perp_setup_status: setup, spot_venue_orders: spot }: Venues): {
  perps?: string
  spot?: string
} {
  const perps = hasFailed(setup) ? undefined : setup.account_value_usd
  if (hasFailed(spot)) return { ...(perps !== undefined && { perps }) }
  const isShared =
    !hasFailed(setup) && (setup.account_mode === 'unified' || setup.account_mode === 'portfolio')
  const values = spot.balances.map(({ asset, total }) => {
    // With one balance for both sides, the account of perpetuals has the dollars.
    if (asset === 'USDC') return isShared ? '0' : total
    return figureFormulas.product(total, spot.mark_prices[asset] ?? '0')
  })
  return { ...(perps !== undefined && { perps }), spot: summed(values) ?? '0' }
}

export const isMoney = (usd: string | undefined): usd is string => usd !== undefined && /[1-9]/.test(usd)

export const notes = (texts: readonly string[], width: number): Section[] =>
  texts.length === 0 ? [] : [['', texts.flatMap((text) => wrapped(text, width))]]
