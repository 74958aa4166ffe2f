import { subtractDecimals, toFixedPoint } from '#kernel/money/money.ts'
import type {
  Account,
  Fill,
  Funding,
  LedgerUpdate,
  SpotBalance,
  SpotMarket,
} from '#upstreams/hyperliquid/hyperliquid.ts'

/** Computes expected balances from fills, funding and transfers, and compares them with the venue's. */

/** Balances by key: `cash`, `position:<market>` or `spot:<token>`. A balance without a key in the map is zero. */
export type Balances = ReadonlyMap<string, string>
export type Difference = { balanceKey: string; expected: string; actual: string }

export const cashBalanceKey = 'cash'
export const positionBalanceKey = (symbol: string): string => `position:${symbol}`
export const spotBalanceKey = (token: string): string => `spot:${token}`

/** A binary float is exact in its first fifteen digits. */
const floatDigits = 10n ** 15n
/** The venue rounds cash to micro-dollars, so each entry may be off by one. */
const roundingUnits = toFixedPoint('0.000001')

/** Compares balances by key; `entries` is the number of summands in `expected`, each with a rounding error. */
export function compareBalances(expected: Balances, actual: Balances, entries: number): Difference[] {
  const balanceKeys = [...new Set([...expected.keys(), ...actual.keys()])].sort()
  return balanceKeys.flatMap((balanceKey) => {
    const [wanted, found] = [expected.get(balanceKey) ?? '0', actual.get(balanceKey) ?? '0']
    const deviation = toFixedPoint(found) - toFixedPoint(wanted)
    const size = deviation < 0n ? -deviation : deviation
    const held = toFixedPoint(found) < 0n ? -toFixedPoint(found) : toFixedPoint(found)
    const allowed =
      balanceKey === cashBalanceKey ? roundingUnits * BigInt(entries) : (held / floatDigits) * BigInt(entries)
    return size > allowed ? [{ balanceKey, expected: wanted, actual: found }] : []
  })
}

export const isPosition = ({ balanceKey }: Difference): boolean =>
  balanceKey.startsWith(positionBalanceKey(''))

export const deviationOf = ({ expected, actual }: Difference): string => subtractDecimals(actual, expected)

function describeBalance(balanceKey: string): string {
  if (balanceKey === cashBalanceKey) return 'the cash on the perp side'
  const [kind, name] = balanceKey.split(':')
  return kind === 'position' ? `the position in ${name}` : `the balance of ${name}`
}

/** Returns the text that the user reads as the reason for a mismatch. */
export const describeDifferences = (found: readonly Difference[]): string =>
  found
    .map(
      ({ balanceKey, expected, actual }) =>
        `${describeBalance(balanceKey)} is ${actual} at the venue and ${expected} in the gateway's record`,
    )
    .join('; ')

/**
 * Returns the balances at the venue. If perp and spot share one balance, `balances` is false, and only positions are
 * returned.
 */
export function observedBalances(
  { positions, cashUsd }: Pick<Account, 'positions' | 'cashUsd'>,
  tokens: readonly Pick<SpotBalance, 'coin' | 'total'>[],
  { balances }: { balances: boolean },
): Balances {
  const held = positions.map(({ symbol, signedSize }) => [positionBalanceKey(symbol), signedSize] as const)
  if (!balances) return new Map(held)
  const spot = tokens.map(({ coin, total }) => [spotBalanceKey(coin), total] as const)
  return new Map([...held, ...spot, [cashBalanceKey, cashUsd]])
}

export type FillRow = {
  trade_id: number
  order_id: number
  cloid: string | null
  symbol: string
  base: string | null
  quote: string | null
  signed_size: string
  price: string
  fee: string
  fee_token: string
  cause: Fill['cause']
  at_ms: number
  realized_pnl: string
  tx_hash: string | null
}
export type VenueLedgerEntryRow = {
  key: string
  kind: string
  balance_key: string | null
  amount: string | null
  reason: string | null
  at_ms: number
}

export const fillRow = (
  fill: Fill,
  spots: ReadonlyMap<string, Pick<SpotMarket, 'base' | 'quote'>>,
): FillRow => {
  const market = spots.get(fill.symbol)
  return {
    trade_id: fill.tradeId,
    order_id: fill.orderId,
    cloid: fill.cloid,
    symbol: fill.symbol,
    base: market?.base ?? null,
    quote: market?.quote ?? null,
    price: fill.price,
    signed_size: fill.isBuy ? fill.size : `-${fill.size}`,
    fee: fill.feeUsd,
    fee_token: fill.feeToken,
    cause: fill.cause,
    at_ms: fill.atMs,
    realized_pnl: fill.closedPnlUsd,
    tx_hash: fill.txHash,
  }
}

export const fundingRow = ({ symbol, paidUsd, atMs }: Funding): VenueLedgerEntryRow => ({
  key: `funding:${symbol}:${atMs}`,
  kind: 'funding',
  balance_key: cashBalanceKey,
  amount: paidUsd,
  reason: null,
  at_ms: atMs,
})

/** Returns a row for each balance that a ledger update changed, or one without a key if the venue names none. */
export function ledgerUpdateRows({
  type,
  hash,
  amountUsd,
  nonce,
  moves,
  atMs,
}: LedgerUpdate): VenueLedgerEntryRow[] {
  const key = `${type}:${atMs}:${hash}:${nonce ?? ''}:${amountUsd ?? ''}`
  const row = { kind: type, reason: null, at_ms: atMs }
  if (moves === null) return [{ key, ...row, balance_key: null, amount: null }]
  return moves.map(({ balance, amount }, n) => ({
    key: `${key}:${n}`,
    ...row,
    amount,
    balance_key: balance === 'perp' ? cashBalanceKey : spotBalanceKey(balance),
  }))
}

/** Whether money left by a signature of the account, made by the gateway or another holder of its key. */
export const isOutgoingTransfer = ({ type, moves, isOutgoing }: LedgerUpdate): boolean =>
  isOutgoing ||
  (type !== 'accountClassTransfer' && (moves ?? []).some(({ amount }) => amount.startsWith('-')))
