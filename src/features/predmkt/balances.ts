import { Fault } from '#kernel/contract/fault.ts'
import { toAssetId } from '#kernel/money/chains.ts'
import { usdcDecimals } from '#kernel/money/money.ts'
import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import type { VenueMoney } from '#kernel/money/prediction-setup.ts'
import type { PredictionMarket, SettlementState } from '#kernel/money/prediction-views.ts'
import type { AccountRef, LedgerToken } from '#kernel/task/task.ts'
import type { PredmktDeps } from './deps.ts'
import { lockedShares, restingCash, unsettledOf } from './store/order-store.ts'

/** What a wallet at the venue can spend: what the chain shows, less what open orders and running tasks hold. */

export const subAccount = 'predmkt'
export const cashSymbol = 'pUSD'
type BalanceDeps = Pick<PredmktDeps, 'db' | 'chain' | 'venue' | 'ledger'>
type WalletOf = { userId: string; wallet: VenueWallet }

export function moneyOf({ venue }: Pick<PredmktDeps, 'venue'>): VenueMoney {
  if (venue.money) return venue.money
  throw new Fault('unavailable', 'The venue holds the money itself, so nothing is moved here')
}

export const cashAccount = (
  { chain, venue }: Pick<PredmktDeps, 'chain' | 'venue'>,
  userId: string,
): AccountRef => ({
  owner: userId,
  asset: toAssetId(chain.row, moneyOf({ venue }).cashToken),
  subAccount,
})
export const sharesAccount = (
  { chain }: Pick<PredmktDeps, 'chain'>,
  userId: string,
  outcomeId: string,
): AccountRef => ({
  owner: userId,
  asset: `${chain.row.id}:outcome:${outcomeId}`,
  subAccount,
})
export const cashLedgerToken = ({ venue }: Pick<PredmktDeps, 'venue'>): LedgerToken => ({
  symbol: cashSymbol,
  decimals: usdcDecimals,
  address: moneyOf({ venue }).cashToken,
})
export const sharesLedgerToken = (outcomeId: string): LedgerToken => ({
  symbol: 'shares',
  decimals: usdcDecimals,
  address: outcomeId,
})

export type Spendable = { totalUnits: bigint; lockedUnits: bigint; freeUnits: bigint; version: bigint }

const spendable = (
  chainUnits: bigint,
  restingUnits: bigint,
  held: { heldUnits: bigint; version: bigint },
): Spendable => {
  const totalUnits = chainUnits > restingUnits ? chainUnits - restingUnits : 0n
  const freeUnits = totalUnits > held.heldUnits ? totalUnits - held.heldUnits : 0n
  return { totalUnits, lockedUnits: chainUnits - freeUnits, freeUnits, version: held.version }
}

/** The version of the ledger is read before the chain, so that a hold that settles in between is noticed. */
export async function cashOf(deps: BalanceDeps, { userId, wallet }: WalletOf): Promise<Spendable> {
  const { db, chain, venue, ledger } = deps
  const held = await ledger.balance(db, cashAccount(deps, userId))
  const restingUnits = await restingCash(db, { userId, venue: venue.name })
  const { tokens } = await chain.balances(wallet.wallet, [moneyOf(deps).cashToken])
  const [units] = tokens
  if (units === undefined) throw new Fault('unavailable', 'The chain returned no balance; try again later')
  return spendable(units, restingUnits, held)
}

/** Refuses what a node says that does not show a block yet which another one has shown. */
export function assertBlock({ number }: { number: bigint }, minBlock: bigint): void {
  if (number < minBlock)
    throw new Fault('unavailable', 'The node of the chain lags behind what was read before; try again later')
}

export async function chainShares(
  { chain, venue }: Pick<PredmktDeps, 'chain' | 'venue'>,
  wallet: string,
  outcomes: readonly { market: Pick<PredictionMarket, 'protocol'>; outcomeId: string }[],
  minBlock = 0n,
): Promise<bigint[]> {
  const money = moneyOf({ venue })
  if (outcomes.length === 0) return []
  const { head, results } = await chain.views(
    outcomes.map(({ market, outcomeId }) => money.sharesCall(wallet, market, outcomeId)),
  )
  assertBlock(head, minBlock)
  return results.map(({ success, data }) => {
    if (!success || data.length !== 66)
      throw new Fault('unavailable', 'The chain returned no shares; try again later')
    return BigInt(data)
  })
}

type Sold = { outcomeId: string; side: 'buy' | 'sell'; settlement: SettlementState }

/** What the chain has of the outcomes whose sales have settled; none where it cannot be read now. */
export async function sharesAfterSales(
  deps: Pick<PredmktDeps, 'chain' | 'venue'>,
  wallet: string,
  trades: readonly Sold[],
): Promise<Map<string, bigint>> {
  const sales = trades.filter(({ side, settlement }) => side === 'sell' && settlement === 'confirmed')
  const ids = [...new Set(sales.map(({ outcomeId }) => outcomeId))]
  const outcomes = ids.map((outcomeId) => ({
    outcomeId,
    market: { protocol: deps.venue.protocolOf(outcomeId) ?? 'v1' },
  }))
  const units = await chainShares(deps, wallet, outcomes).catch((fault: unknown) => {
    if (fault instanceof Fault) return []
    throw fault
  })
  return new Map(
    ids.flatMap((id, index) => (units[index] === undefined ? [] : [[id, units[index]] as const])),
  )
}

export type SpendableShares = Spendable & {
  /** Shares that were bought and may still fail, and shares that are being sold, which may have left by the chain. */
  unsettledUnits: bigint
}

export async function sharesOf(
  deps: BalanceDeps,
  {
    userId,
    wallet,
    market,
    outcomeId,
  }: WalletOf & { market: Pick<PredictionMarket, 'protocol'>; outcomeId: string },
): Promise<SpendableShares> {
  const { db, venue, ledger } = deps
  const owner = { userId, venue: venue.name }
  const held = await ledger.balance(db, sharesAccount(deps, userId, outcomeId))
  const [locked, boughtUnits] = await Promise.all([
    lockedShares(db, owner, outcomeId),
    unsettledOf(db, owner, outcomeId),
  ])
  const [units = 0n] = await chainShares(deps, wallet.wallet, [{ market, outcomeId }])
  return {
    ...spendable(units, locked.units, held),
    unsettledUnits: boughtUnits + locked.leavingUnits + held.heldUnits,
  }
}
