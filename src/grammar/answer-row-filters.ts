import { isDecimal, toUnits } from '#kernel/money/money.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { assetNamed, dollarSymbol, type Names } from './asset-and-chain-names.ts'
import type { Slots } from './clause-reader.ts'
import { periodOf, rangeOf } from './times.ts'

/** The filters and the sort order by which an answer shows rows of an output. */
export type Row = { row: JsonObject; at: number }
export type Picked = (row: JsonObject, context: { slots: Slots; names: Names; nowMs: number }) => boolean

const wanted = ({ assets, asset }: Slots): string[] => [
  ...(assets?.split(',') ?? []),
  ...(asset === undefined ? [] : [asset]),
]
export const named: Picked = (row, { slots }) => {
  const symbols = wanted(slots)
  return (
    symbols.length === 0 ||
    [row.symbol, row.base, row.asset].some((symbol) => typeof symbol === 'string' && symbols.includes(symbol))
  )
}
/** Picks orders at the venue: those with a trigger if the user means stops, and those without if limit orders. */
export const resting: Picked = (row, context) =>
  named(row, context) &&
  (context.slots.id === undefined || row.order_id === context.slots.id) &&
  isOfOrderKind(row, context.slots)
export const isOfOrderKind = (row: JsonObject, { venue }: Slots): boolean => {
  const hasTrigger = typeof row.trigger_price === 'string'
  return venue === 'limit' ? !hasTrigger : venue === 'hook' ? hasTrigger : true
}
export const held: Picked = (row, context) =>
  named(row, context) && (context.slots.chain === undefined || row.chain_id === context.slots.chain)
/** Picks what has a value above zero, and what could not be read. */
export const valued: Picked = ({ value_usd: value }) =>
  value === null || (typeof value === 'string' && units(value) !== 0n)
export const ofAsset: Picked = (row, context) => named(row, context) && valued(row, context)
export const onChain: Picked = (row, { slots }) => slots.chain === undefined || row.chain_id === slots.chain
export const walletOf: Picked = (row, { slots }) =>
  slots.chain === undefined ||
  (Array.isArray(row.supported_chain_ids) && row.supported_chain_ids.includes(slots.chain))
export const ofToken: Picked = (row, { slots, names }) => {
  const asset = assetNamed(slots.asset, names)
  return asset === undefined || asset.tokens.some(({ chainId }) => chainId === row.chain_id)
}
/** Picks the rows with a known gain or loss, and the rows of the asset that the user asked about. */
export const gained: Picked = (row, context) =>
  held(row, context) &&
  (context.slots.asset !== undefined || row.unrealized_pnl_usd !== null || row.realized_pnl_usd !== null)
export const traded: Picked = (row) => row.routable !== false

const isWithin = (
  text: JsonObject[string] | undefined,
  { slots, nowMs }: { slots: Slots; nowMs: number },
) => {
  const range = slots.period === undefined ? undefined : rangeOf(slots.period, nowMs)
  if (!range) return true
  const atMs = typeof text === 'string' ? Date.parse(text) : Number.NaN
  return atMs >= range.fromMs && atMs <= range.toMs
}
/** Picks tasks other than answers of the chat, which are tasks too, but which nobody asks about. */
export const asked: Picked = (row) => row.kind !== 'chat'
export const ofTime: Picked = (row, context) => isWithin(row.created_at, context)
export const inWindow: Picked = (row, { slots, nowMs }) =>
  isWithin(row.start, { slots: { ...slots, period: periodOf(slots) }, nowMs })
export const moved: Picked = (row, context) =>
  asked(row, context) && row.kind !== 'faucet_grant' && isWithin(row.created_at, context)
export const filled: Picked = (row, context) => named(row, context) && isWithin(row.at, context)
export const paidInDollars: Picked = (row, context) => row.fee_token === dollarSymbol && filled(row, context)
/** Picks hooks if the user means stops, and all waiting orders otherwise. */
const stemLength = 5
/** How many words of a question the texts of a market have, each by its beginning. */
export function wordsInCommon(row: JsonObject, question: string | undefined): number {
  const outcomes = Array.isArray(row.outcomes) ? JSON.stringify(row.outcomes) : ''
  const text = `${row.question} ${row.title ?? ''} ${outcomes}`.toLowerCase().replace(/(\d),(?=\d)/g, '$1')
  return (question ?? '')
    .split(' ')
    .filter((word) => word !== '' && text.includes(word.replace(/k$/, '000').slice(0, stemLength))).length
}
/** Picks the markets that share a word with the question, if the user asked one. */
export const aboutQuestion: Picked = (row, { slots }) =>
  slots.question === undefined || wordsInCommon(row, slots.question) > 0
export const waiting: Picked = (row, context) =>
  context.slots.venue === 'hook' ? row.order_kind === 'hook' && named(row, context) : ofOrder(row, context)
const ofOrder: Picked = (row, context) =>
  row.order_kind === 'hook' ? named(row, context) : ofTokens(row, context)
const ofTokens: Picked = (row, { slots, names }) => {
  const asset = assetNamed(slots.asset, names)
  return (
    asset === undefined ||
    asset.tokens.some(({ address }) => address === row.token_in || address === row.token_out)
  )
}
export const ofKind =
  (kind: string): Picked =>
  (row, context) =>
    row.order_kind === kind && waiting(row, context)
export const active: Picked = (row) => row.status === 'active'

const units = (value: JsonObject[string] | undefined): bigint =>
  typeof value === 'string' && isDecimal(value) ? toUnits(value, 18) : 0n
const dayChange = (row: JsonObject): bigint => {
  const before = units(row.prev_day_price)
  return before === 0n ? 0n : ((units(row.mark_price ?? row.price) - before) * 10n ** 18n) / before
}
const sorts: Readonly<Record<string, (row: JsonObject) => bigint>> = {
  volume: (row) => units(row.volume_24h_usd),
  funding: (row) => units(row.funding_rate),
  open_interest: (row) => units(row.open_interest) * units(row.mark_price),
  gainers: dayChange,
  losers: (row) => -dayChange(row),
}
export const bySort = (rows: readonly Row[], { sort = 'volume' }: Slots): Row[] => {
  const key = sorts[sort]
  return key
    ? [...rows].sort((a, b) => (key(b.row) > key(a.row) ? 1 : key(b.row) < key(a.row) ? -1 : a.at - b.at))
    : [...rows]
}
