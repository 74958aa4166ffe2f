import { guardsOf } from '#engines/strategy-terms/guard-config.ts'
import type { GuardsInput, StrategyFields, StrategyType } from '#engines/strategy-terms/strategy-schemas.ts'
import type { StrategyFacts } from '#features/strategies/strategy-facts.ts'
import type { Names } from '#grammar/asset-and-chain-names.ts'
import { splitGuards } from '#grammar/strategy-guards.ts'
import { mayBeStrategy, readStrategy, type WordReading } from '#grammar/strategy-order.ts'
import { Fault, invalid } from '#kernel/contract/fault.ts'
import { optionsOf, type Plan, type PlanInput, queryIn } from './plan.ts'
import { type Calendar, isElapsed } from './recurrence/calendar-types.ts'
import { strategySecondsMin } from './schedule-schemas.ts'
import { type ReadCalendar, splitSentence } from './split-sentence.ts'
import type { Compiled, Ordered, StrategyOrders } from './strategy-orders.ts'
import type { StrategyPort } from './strategy-port.ts'
import { spendingOf } from './strategy-spending.ts'
import { strategyText } from './strategy-text.ts'

/** What a strategy is by the input that makes or changes it: its configuration, or a sentence that says it. */

/** What a sentence says beside the configuration. */
export type StrategyWords = {
  /** The sentence without its times. */
  query: string
  guards: GuardsInput
  budgetUsd?: string
  times?: ReadCalendar
}
export type StrategyTerms = {
  type: StrategyType
  facts: StrategyFacts
  words?: StrategyWords
  /** The configuration in words, for a strategy that nobody has put into words. */
  text: string
}
export type TermsDeps = {
  strategies: StrategyPort | undefined
  /** Returns the names of the assets that sentences use. */
  assetNames: () => Promise<Names>
}
/** The stored plan of a schedule that is changed, and the facts of its strategy. */
type Stored = { plan: Plan; facts: StrategyFacts | undefined }
type Asked = { now: Date; stored?: Stored }

/** Sentences that are strategies, for those that are none. */
export const strategyExamples: readonly string[] = [
  'every Monday at 09:00 buy 20 dollars of ETH, and stop when I am down 10 percent',
  'every month on the 1st rebalance to 60% BTC and 40% ETH',
  'long 100 dollars of BTC when RSI is below 30, and close when RSI is above 55',
]

/** Returns the terms of the strategy that an input makes or changes; undefined if it is a prompt. */
export async function termsOf(
  deps: TermsDeps,
  input: PlanInput,
  { now, stored }: Asked,
): Promise<StrategyTerms | undefined> {
  const type = stored?.plan.type ?? input.type
  if (type === 'prompt') return undefined
  const text = queryIn(input)
  if (input.config !== undefined)
    return type && termsOfFields(deps, { type, fields: input.config, at: 'config' })
  // An edit of anything else needs no venue, which may be away or trade a market no longer.
  if (type && stored?.facts && text === undefined)
    return { type, facts: stored.facts, text: strategyText(type, stored.facts.fields) }
  if (text === undefined) {
    if (type === undefined) return undefined
    throw invalid(
      'config',
      'missing',
      'Field required: add `config`, or a `query` that says what the strategy does',
    )
  }
  if (type === undefined && !(deps.strategies && mayBeStrategy(text))) return undefined
  return termsOfWords(deps, { text, type, input: withBounds(input, stored?.plan.calendar), now })
}

/** Adds the zone and the bounds of the stored times, which the times of another sentence keep. */
function withBounds(input: PlanInput, stored: Calendar | null | undefined): PlanInput {
  if (!stored) return input
  const { timezone, starts_at, ends_at } = stored
  return {
    timezone,
    ...(starts_at !== undefined && !isElapsed(stored) && { starts_at }),
    ...(ends_at !== undefined && { ends_at }),
    ...input,
  }
}

type Fields = { type: StrategyType; fields: StrategyFields; at: string; words?: StrategyWords }

async function termsOfFields(
  { strategies }: TermsDeps,
  { type, fields, at, words }: Fields,
): Promise<StrategyTerms> {
  if (!strategies) throw new Fault('unavailable', 'This instance has no venue to trade at')
  const facts = await strategies.factsOf({ ...fields, type }, at)
  return { type, facts, text: strategyText(type, facts.fields), ...(words && { words }) }
}

type Worded = { text: string; type: StrategyType | undefined; input: PlanInput; now: Date }

async function termsOfWords(deps: TermsDeps, worded: Worded): Promise<StrategyTerms | undefined> {
  const { text, type } = worded
  const read = readWords(text, await deps.assetNames(), worded)
  if ('unread' in read) {
    if (type === undefined && !read.isGuarded) return undefined
    throw notUnderstood(read.unread, text)
  }
  const { strategy, words } = read
  if (type !== undefined && strategy.type !== type)
    throw invalid(
      'type',
      'value_error',
      `Value error: the words of \`query\` are a strategy of the type ${strategy.type}`,
    )
  const fields = strategy.config as StrategyFields
  return termsOfFields(deps, { type: strategy.type, fields, at: 'config', words }).catch(ofQuery)
}

/** Throws the refusal of a configuration that was read from words as one of the words. */
function ofQuery(error: unknown): never {
  if (!(error instanceof Fault) || error.code !== 'validation') throw error
  const [issue] = error.issues
  throw invalid('query', issue?.type ?? 'value_error', issue?.msg ?? error.message, issue?.ctx)
}

function notUnderstood(unread: readonly string[], text: string) {
  const shown = unread.length > 0 ? unread : [text.slice(0, 200)]
  return invalid(
    'query',
    'not_understood',
    `No strategy says "${shown.join('", "')}": leave it out, give \`config\`, or make it a chat by \`type: prompt\``,
    { unread: shown, examples: strategyExamples },
  )
}

type ReadWords =
  | { strategy: Extract<WordReading, { strategy: object }>['strategy']; words: StrategyWords }
  | { unread: string[]; isGuarded: boolean }

/** Reads a sentence: its guards, then its times at one of its ends, and then what is left. */
function readWords(text: string, names: Names, { input, now }: Worded): ReadWords {
  const { rest, guards, budgetUsd } = splitGuards(text)
  const isGuarded = Object.keys(guards).length > 0
  const wordsOf = (query: string, times?: ReadCalendar): StrategyWords => ({
    query,
    guards,
    ...(budgetUsd !== undefined && { budgetUsd }),
    ...(times && { times }),
  })
  const untimed = readStrategy(rest, names, { isTimed: false })
  if ('strategy' in untimed) return { ...untimed, words: wordsOf(rest) }
  if (input.schedule !== undefined) {
    const timed = readStrategy(rest, names, { isTimed: true })
    return 'strategy' in timed ? { ...timed, words: wordsOf(rest) } : { ...timed, isGuarded }
  }
  const sentence = splitSentence(rest, optionsOf(input, { now, secondsMin: strategySecondsMin }))
  if ('refusal' in sentence) {
    // Without times a purchase is understood as well; what it lacks is then said of its field.
    const timed = readStrategy(rest, names, { isTimed: true })
    if ('strategy' in timed) return { ...timed, words: wordsOf(rest) }
    return { ...(lengthOf(timed.unread) < lengthOf(untimed.unread) ? timed : untimed), isGuarded }
  }
  const { query, ...times } = sentence
  const timed = readStrategy(query, names, { isTimed: true })
  return 'strategy' in timed ? { ...timed, words: wordsOf(query, times) } : { ...timed, isGuarded }
}

const lengthOf = (words: readonly string[]): number => words.join(' ').length

/** What the runs of a strategy order: entries and exits of perpetual positions. */
export const ordersOf = ({ facts }: StrategyTerms, plan: Plan): Ordered & StrategyOrders => ({
  operations: ['perp_open', 'perp_close'],
  isSpending: true,
  strategy: facts.strategy,
  assets: facts.assets,
  spanSeconds: facts.spanSeconds,
  orderMaxUsd: facts.orderMaxUsd,
  leverageMax: facts.leverageMax,
  entriesPerDayMax: facts.entriesPerDayMax,
  guards: guardsOf(plan.guards),
  ...spendingOf({
    facts,
    guards: plan.guards,
    calendar: plan.calendar,
    wholeUsd: plan.budgetUsd ?? plan.paperBalanceUsd,
  }),
})

/** Returns the facts that are stored with a version; undefined for a prompt. */
export function storedFacts(
  { strategy, assets, spanSeconds, orderMaxUsd, leverageMax, entriesPerDayMax }: Compiled,
  fields: StrategyFields | null,
): StrategyFacts | undefined {
  if (!strategy || !assets || !fields) return undefined
  return {
    fields,
    strategy,
    assets,
    spanSeconds: spanSeconds ?? null,
    orderMaxUsd: orderMaxUsd ?? null,
    leverageMax: leverageMax ?? null,
    entriesPerDayMax: entriesPerDayMax ?? null,
  }
}
