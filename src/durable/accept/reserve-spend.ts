import { Fault } from '#kernel/contract/fault.ts'
import { shardOf } from '#kernel/id.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { type Spend, spendKey, type Tx } from '#kernel/task/task.ts'
import { jsonText, query } from '#store/query.ts'

/** Reserves the spend of a task that was accepted before its amount was known, such as that of a price trigger. */

export type ReservingTask = { id: string; userId: string; kind: string; createdAt: Date }
export type ReservedSpend = Required<Pick<Spend, 'account' | 'amountUnits' | 'token' | 'seen'>> &
  Pick<Spend, 'gas'> & {
    /** The ledger key of the task's hold if it is not the first one; the step that delivers the units posts it. */
    holdKey?: string
  }
/** Reserves a spend in the commit of a step, which has locked the task. Throws if an acceptance would refuse it. */
export type ReserveSpend = (tx: Tx, task: ReservingTask, spend: ReservedSpend, at: Date) => Promise<void>

type Row = { verdict: string; detail: { used?: string; required?: string; available?: string } | null }

export const reserveSpend: ReserveSpend = async (tx, task, spend, at) => {
  const { account, amountUnits, token, seen, gas, holdKey = spendKey(task.id) } = spend
  if (account.owner !== task.userId) throw new Error(`${task.kind} spends from an account of another user`)
  const [row] = await query<Row>(tx, 'select * from task_reserve($1::jsonb)', [
    jsonText({
      n: 0,
      id: task.id,
      shard: shardOf(task.userId),
      user_id: task.userId,
      created_at: at,
      asset: account.asset,
      sub_account: account.subAccount,
      amount: String(amountUnits),
      seen_total: String(seen.totalUnits),
      seen_version: String(seen.version),
      reason: task.kind,
      hold_key: holdKey,
      gas_chain: gas?.chainId,
      gas_day: gas && at.toISOString().slice(0, 10),
      gas_wei: gas && String(gas.wei),
      gas_budget: gas?.budgetWei == null ? null : String(gas.budgetWei),
    }),
  ])
  if (row?.verdict === 'reserved') return
  const { used = '0', required = '0', available = '0' } = row?.detail ?? {}
  if (row?.verdict === 'gas' && gas) throw gas.refuse(BigInt(used))
  if (row?.verdict === 'short')
    throw insufficientBalance(token, { requiredUnits: BigInt(required), availableUnits: BigInt(available) })
  throw new Fault('unavailable', 'The balance was settled after it was read; try again')
}
