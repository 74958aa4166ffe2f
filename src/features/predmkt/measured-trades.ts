import type { OutcomeTrade } from '#kernel/money/prediction-views.ts'
import type { TransferLog } from '#upstreams/evm/token-calls.ts'
import { moneyOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'

/**
 * What a confirmed trade moved, by the chain: the venue lists an average price, which is rounded. A trade counts as
 * confirmed only once a node shows its transaction, and that it succeeded.
 */

export type MeasuredTrade = OutcomeTrade & {
  /** Cash that left the wallet, or came to it by a sale, its fee included; null where the chain does not say it. */
  netUnits: bigint | null
}

/**
 * These trades, and the trades beside them: parts of one trade, and trades of one transaction, can be distinguished only
 * together.
 */
export function besideTrades(
  trades: readonly OutcomeTrade[],
  isSought: (trade: OutcomeTrade) => boolean,
): OutcomeTrade[] {
  const sought = trades.filter(isSought)
  const ids = new Set(sought.map(({ tradeId }) => tradeId))
  const hashes = new Set(sought.flatMap(({ txHash }) => txHash ?? []))
  return trades.filter(({ tradeId, txHash }) => ids.has(tradeId) || (txHash !== null && hashes.has(txHash)))
}

export async function measureTrades(
  { chain, venue }: Pick<PredmktDeps, 'chain' | 'venue'>,
  wallet: string,
  trades: readonly OutcomeTrade[],
): Promise<MeasuredTrade[]> {
  const hashes = [...new Set(trades.filter(isConfirmed).flatMap(({ txHash }) => txHash ?? []))]
  const { receipts } = hashes.length > 0 ? await chain.receipts(hashes) : { receipts: [] }
  const byHash = new Map(hashes.map((hash, index) => [hash, receipts[index]]))
  const cash = moneyOf({ venue }).cashToken
  return trades.map((trade) => {
    if (!isConfirmed(trade)) return { ...trade, netUnits: null }
    const receipt = trade.txHash === null ? undefined : byHash.get(trade.txHash)
    if (!receipt?.success) return { ...trade, settlement: 'mined', netUnits: null }
    // A transaction that settles several trades of the wallet does not say what each one moved.
    const isAlone = trades.filter(({ txHash }) => txHash === trade.txHash).length === 1
    const units = isAlone ? netUnits(chain.transfers(receipt), { wallet, cash, side: trade.side }) : null
    return { ...trade, netUnits: units }
  })
}

const isConfirmed = ({ settlement }: OutcomeTrade): boolean => settlement === 'confirmed'

type Measured = { wallet: string; cash: string; side: 'buy' | 'sell' }

function netUnits(transfers: readonly TransferLog[], { wallet, cash, side }: Measured): bigint | null {
  const own = wallet.toLowerCase()
  const moved = transfers
    .filter(({ token }) => token.toLowerCase() === cash.toLowerCase())
    .reduce((sum, { from, to, amountUnits }) => {
      const isOut = from.toLowerCase() === own
      const isIn = to.toLowerCase() === own
      return sum + (isIn ? amountUnits : 0n) - (isOut ? amountUnits : 0n)
    }, 0n)
  const units = side === 'buy' ? -moved : moved
  return units > 0n ? units : null
}
