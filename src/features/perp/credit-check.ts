import { spotCashMicros } from '#engines/venue/orders/collateral.ts'
import type { Json, JsonObject } from '#kernel/task.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'

/** Whether a deposit may have been credited: the balance tells, at a tenth of what the list of transfers costs. */

export type CreditTaskData = {
  account: string
  /** Dollars of the account when it was last asked. */
  cash_seen?: string
  /** So often the list was read since the dollars changed: it may be a moment behind them. */
  list_reads?: number
  /** One balance for both sides, which is kept on the spot side. */
  unified?: boolean
}
type Source = Pick<Hyperliquid, 'account' | 'spotBalances'>

/** After so many looks the list is read although the dollars look the same. */
const cheapPollsMax = 8
const listReadsMax = 5

/** The dollars that a deposit changes. */
export async function cashOf(
  venue: Source,
  { account, unified }: Pick<CreditTaskData, 'account' | 'unified'>,
): Promise<string> {
  const [{ cashUsd }, spot] = await Promise.all([
    venue.account(account),
    unified ? spotCashMicros(venue, account) : 0n,
  ])
  return unified ? `${cashUsd} ${spot}` : cashUsd
}

export async function checkForCredit(
  venue: Source,
  taskData: CreditTaskData,
  polls: Json | undefined,
): Promise<{ isNew: boolean; data: JsonObject }> {
  const { cash_seen, list_reads = 0 } = taskData
  const cash = await cashOf(venue, taskData)
  if (cash !== cash_seen) {
    const isOver = list_reads + 1 >= listReadsMax
    return { isNew: true, data: isOver ? { cash_seen: cash, list_reads: 0 } : { list_reads: list_reads + 1 } }
  }
  return { isNew: Number(polls ?? 0) % cheapPollsMax === cheapPollsMax - 1, data: {} }
}
