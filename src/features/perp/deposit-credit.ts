import { spotCashMicros } from '#engines/venue/orders/collateral-shortfall.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'

/**
 * This module looks for the credit of a deposit in the balance of the account before it reads the transfer list: a read
 * of the balance costs a tenth of the request weight.
 */

export type CreditTaskData = {
  account: string
  /** The cash of the account at the last read. */
  cash_seen?: string
  /** How often the transfer list was read since the cash changed; the list may lag behind the cash. */
  list_reads?: number
  /** Whether perp and spot share one balance, which the spot side holds. */
  unified?: boolean
}
type Source = Pick<Hyperliquid, 'account' | 'spotBalances'>

/** After this many polls the transfer list is read even if the cash has not changed. */
const cheapPollsMax = 8
const listReadsMax = 5

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
  polls: number,
): Promise<{ isNew: boolean; data: Pick<CreditTaskData, 'cash_seen' | 'list_reads'> }> {
  const { cash_seen, list_reads = 0 } = taskData
  const cash = await cashOf(venue, taskData)
  if (cash !== cash_seen) {
    const isOver = list_reads + 1 >= listReadsMax
    return { isNew: true, data: isOver ? { cash_seen: cash, list_reads: 0 } : { list_reads: list_reads + 1 } }
  }
  return { isNew: polls % cheapPollsMax === cheapPollsMax - 1, data: {} }
}
