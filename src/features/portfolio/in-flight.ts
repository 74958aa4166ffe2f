import { fromUnits, subtractDecimals, usdcDecimals } from '#kernel/money/money.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

/** Says what of a task under way has left one place of the user and has not arrived in another. */

/** The part of a task's row that shows how far its money is. */
export type MovingTask = { kind: string; step: string; data: JsonObject }
export type Moved = { chainId: string; tokenAddress: string; symbol: string; amount: string }
/** Tokens whose price is still to be read, or dollars; `unknown` if the row does not show whether money is in flight. */
export type InFlight = { tokens: readonly Moved[] } | { usd: string } | 'unknown'

const nothing: InFlight = { tokens: [] }
/** What these tasks send has left the user for good. */
const spending = ['wallets_transfer', 'credits_recharge']

type Change = { chain_id: string; token_address: string; symbol: string; amount: string; decimals: number }

const changesOf = ({ balance_changes: changes }: JsonObject): Change[] =>
  Array.isArray(changes) ? changes.map((each) => each as Change) : []

export function inFlightOf({ kind, step, data }: MovingTask, fees: { venueWithdrawalUsd: string }): InFlight {
  if (spending.includes(kind)) return nothing
  const changes = changesOf(data)
  const [sent, arrived] = [true, false].map((isSent) =>
    changes.filter(({ amount }) => amount !== '0' && amount.startsWith('-') === isSent),
  ) as [Change[], Change[]]
  if (kind === 'perp_withdraw') {
    // The payout that has arrived is swapped on, and the row does not show whether it has left again.
    if (arrived.length > 0 || (changes.length > 0 && step !== 'arrive')) return 'unknown'
    return step === 'arrive'
      ? { usd: subtractDecimals(String(data.amount_usd), fees.venueWithdrawalUsd) }
      : nothing
  }
  if (kind === 'predmkt_withdraw') {
    if (changes.length > 0) return 'unknown'
    const isOut = ['prepare', 'unwrap', 'unwrapped'].includes(step)
    return isOut ? { usd: fromUnits(BigInt(String(data.units)), usdcDecimals) } : nothing
  }
  if (arrived.length > 0) return nothing
  return {
    tokens: sent.map(({ chain_id: chainId, token_address: tokenAddress, symbol, amount, decimals }) => ({
      chainId,
      tokenAddress,
      symbol,
      amount: fromUnits(-BigInt(amount), decimals),
    })),
  }
}
