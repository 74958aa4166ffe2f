import type { JsonObject } from '#kernel/json.ts'
import { isDecimal, toUnits } from '#kernel/money.ts'
import type { Names } from './names.ts'
import type { Slots } from './reader.ts'

/** Which rows of an output an answer shows, and in which order. */
export type Row = { row: JsonObject; at: number }
export type Picked = (row: JsonObject, context: { slots: Slots; names: Names }) => boolean

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
export const held: Picked = (row, context) =>
  named(row, context) && (context.slots.chain === undefined || row.chain_id === context.slots.chain)
export const onChain: Picked = (row, { slots }) => slots.chain === undefined || row.chain_id === slots.chain
export const walletOf: Picked = (row, { slots }) =>
  slots.chain === undefined ||
  (Array.isArray(row.supported_chain_ids) && row.supported_chain_ids.includes(slots.chain))
export const ofToken: Picked = (row, { slots, names }) => {
  const asset = slots.asset === undefined ? undefined : names.bySymbol.get(slots.asset.toLowerCase())
  return asset === undefined || asset.tokens.some(({ chainId }) => chainId === row.chain_id)
}
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
