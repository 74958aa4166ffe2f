import { sumFills } from '#engines/venue/records/bracket.ts'
import {
  cashBalanceKey,
  observedBalances,
  positionBalanceKey,
  spotBalanceKey,
} from '#engines/venue/records/expected-balances.ts'
import { recentTasks } from '#engines/venue/records/recent-tasks-sql.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import {
  fixedPointDecimals,
  fixedPointOne,
  fromFixedPoint,
  fromUnits,
  rescale,
  subtractDecimals,
  toFixedPoint,
  usdDecimals,
} from '#kernel/money/money.ts'
import type { TaskView } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import type { Account, Fill, SpotBalance } from '#upstreams/hyperliquid/hyperliquid.ts'
import { sizeAfter } from './consistent-reads.ts'
import { clockToleranceMs, readLagMs } from './order-lookup.ts'
import type { OrderOutcome } from './order-result.ts'
import type { OrderTaskData, Spending, SpendingTaskData } from './order-task.ts'
import { positionAfter } from './position-after-fills.ts'

/** Recent spends of the user's tasks at the venue, whose funds a read of the account may still show as free. */

/** The most by which a task notes a spend before or after the venue executes it. */
export const noteErrorMs = 2_000

export class SpendingNotShown extends Fault {
  constructor() {
    super('unavailable', "The venue's balance does not include the last task yet; try again in a second", {
      extras: { retry_after: 1 },
    })
  }
}

const withSpendings = (
  { data: { spendings = [] } }: TaskView<SpendingTaskData>,
  added: Spending[],
): SpendingTaskData => (added.length === 0 ? {} : { spendings: [...spendings, ...added] })

/** A paid transfer; `before` is the spot balance when the transfer was signed. */
type Paid = { side: 'perp' | 'spot'; amount: string; before?: string; atMs: number; now: Date }

export function notePaid(
  task: TaskView<SpendingTaskData>,
  { side, amount, before, atMs, now }: Paid,
): SpendingTaskData {
  const balanceKey = side === 'perp' ? cashBalanceKey : spotBalanceKey('USDC')
  // Transfer amounts are unique, so no earlier state of the balance has this total.
  const left = before === undefined ? undefined : subtractDecimals(before, amount)
  return withSpendings(task, [
    {
      balance_key: balanceKey,
      amount,
      noted_ms: now.getTime(),
      at_ms: atMs,
      shown_by: side === 'spot' && left !== undefined ? { balance_key: balanceKey, total: left } : null,
    },
  ])
}

/** Returns the balance of a token after the last of the given fills, from the venue's start sizes. */
function tokenAfter(fills: readonly Fill[], token: string): string {
  const atMs = Math.max(...fills.map((fill) => fill.atMs))
  const left = fills
    .filter((fill) => fill.atMs === atMs)
    .map((fill) => sizeAfter(fill) - (fill.feeToken === token ? toFixedPoint(fill.feeUsd) : 0n))
  const isBuy = fills[0]?.isBuy === true
  return fromFixedPoint(left.reduce((best, each) => (each > best === isBuy ? each : best)))
}

const worthOf = (price: string, size: bigint): bigint => (toFixedPoint(price) * size) / fixedPointOne

function spotSpendings(
  taskData: OrderTaskData,
  fills: readonly Fill[],
  rest: bigint,
): Omit<Spending, 'noted_ms'>[] {
  const token = taskData.held_before?.coin
  if (token === undefined) return []
  const balanceKey = spotBalanceKey(taskData.is_buy ? 'USDC' : token)
  const paid = fills.reduce((sum, { price, size, feeUsd, feeToken }) => {
    const fee = feeToken === (taskData.is_buy ? 'USDC' : token) ? toFixedPoint(feeUsd) : 0n
    return sum + (taskData.is_buy ? worthOf(price, toFixedPoint(size)) : toFixedPoint(size)) + fee
  }, 0n)
  const held = taskData.is_buy ? worthOf(taskData.price, rest) : rest
  const traded = {
    balance_key: balanceKey,
    amount: fromFixedPoint(paid),
    at_ms: Math.max(...fills.map(({ atMs }) => atMs)),
    shown_by:
      fills.length > 0 ? { balance_key: spotBalanceKey(token), total: tokenAfter(fills, token) } : null,
  }
  return [
    ...(fills.length > 0 ? [traded] : []),
    ...(rest > 0n
      ? [{ balance_key: balanceKey, amount: fromFixedPoint(held), at_ms: null, shown_by: null }]
      : []),
  ]
}

function perpSpendings(
  taskData: OrderTaskData,
  fills: readonly Fill[],
  { rests }: { rests: boolean },
): Omit<Spending, 'noted_ms'>[] {
  // An order that reduces takes no margin; a read that shows its position is newer than all earlier spends.
  const { margin_micros: margin = '0', symbol } = taskData
  const after = rests ? undefined : positionAfter(fills)
  return [
    {
      balance_key: cashBalanceKey,
      amount: fromUnits(BigInt(margin), usdDecimals),
      at_ms: after?.at_ms ?? null,
      shown_by: after ? { balance_key: positionBalanceKey(symbol), total: after.signed_size } : null,
    },
  ]
}

/** Records the amounts that the fills of an order spent, and those that its resting part reserves. */
export function noteSpent(
  task: TaskView<OrderTaskData>,
  taskData: OrderTaskData,
  { entry, fills }: Pick<OrderOutcome, 'entry' | 'fills'>,
  now: Date,
): SpendingTaskData {
  const own = fills.filter(({ orderId }) => orderId === entry.orderId)
  const rests = entry.status === 'resting'
  const rest = rests ? toFixedPoint(taskData.size) - toFixedPoint(sumFills(own).size) : 0n
  const found =
    taskData.market === 'spot' ? spotSpendings(taskData, own, rest) : perpSpendings(taskData, own, { rests })
  const noted_ms = now.getTime()
  return withSpendings(
    task,
    found.map((each) => ({ ...each, noted_ms })),
  )
}

/** A spend that reads may not show yet; `mayClear` means that a newer read may already include the spend. */
export type PendingSpend = { amount: bigint; mayClear: boolean }

type SpotHolding = Pick<SpotBalance, 'coin' | 'total' | 'hold'>
export type Spendings = {
  /** Returns the pending spend of a token on the spot side, in units of 18 decimals. */
  onSpot(balances: readonly SpotHolding[], token: string): PendingSpend
  /** Returns the USDC of the spot side that is spent but may not be shown yet, in micro-dollars. */
  spotCash(balances: readonly SpotHolding[]): PendingSpend
  /** Returns the USDC of the perp side that is spent but may not be shown yet, in micro-dollars. */
  perpCash(account: Pick<Account, 'positions' | 'cashUsd' | 'timeMs'>): PendingSpend
}

/** A read of a balance, which includes everything before `shownUntilMs`, by the venue's clock. */
type BalanceRead = { balanceKey: string; seen: ReadonlyMap<string, string>; shownUntilMs: number }

function pendingSpend(
  all: readonly Spending[],
  { balanceKey, seen, shownUntilMs }: BalanceRead,
): PendingSpend {
  const isSpot = isSpotKey(balanceKey)
  const canShow = (by: Spending['shown_by']): by is NonNullable<Spending['shown_by']> =>
    by !== null && isSpotKey(by.balance_key) === isSpot
  const shownAt = all
    .filter(
      ({ shown_by: by }) =>
        canShow(by) && toFixedPoint(seen.get(by.balance_key) ?? '0') === toFixedPoint(by.total),
    )
    .map(({ at_ms }) => at_ms ?? 0)
  const untilMs = Math.max(shownUntilMs, ...shownAt)
  const left = all.filter(
    (each) => each.balance_key === balanceKey && (each.at_ms === null || each.at_ms > untilMs),
  )
  return {
    amount: left.reduce((sum, { amount }) => sum + toFixedPoint(amount), 0n),
    mayClear: left.some(({ at_ms, shown_by: by }) => canShow(by) || (!isSpot && at_ms !== null)),
  }
}

const isSpotKey = (balanceKey: string): boolean => balanceKey.startsWith(spotBalanceKey(''))
const inMicros = ({ amount, mayClear }: PendingSpend): PendingSpend => ({
  amount: rescale(amount, fixedPointDecimals, usdDecimals, 'up'),
  mayClear,
})

const spendingsOf = (all: readonly Spending[]): Spendings => {
  const onSpot: Spendings['onSpot'] = (balances, token) => {
    const seen = new Map(balances.map(({ coin, total }) => [spotBalanceKey(coin), total]))
    const balanceKey = spotBalanceKey(token)
    const isHeld = (each: Spending) =>
      each.balance_key === balanceKey && each.at_ms === null && each.shown_by === null
    const held = all.filter(isHeld).reduce((sum, { amount }) => sum + toFixedPoint(amount), 0n)
    const hidden = held - toFixedPoint(balances.find(({ coin }) => coin === token)?.hold ?? '0')
    const spent = pendingSpend(
      all.filter((each) => !isHeld(each)),
      { balanceKey, seen, shownUntilMs: 0 },
    )
    if (hidden <= 0n) return spent
    return { amount: spent.amount + hidden, mayClear: true }
  }
  return {
    onSpot,
    spotCash: (balances) => inMicros(onSpot(balances, 'USDC')),
    perpCash: (account) => {
      const seen = observedBalances(account, [], { balances: false })
      const shownUntilMs = account.timeMs - clockToleranceMs
      return inMicros(pendingSpend(all, { balanceKey: cashBalanceKey, seen, shownUntilMs }))
    },
  }
}

/** Returns spends of the user's tasks that a read may not include yet. */
export async function recentSpendings(
  { db, clock }: { db: Queryable; clock: Clock },
  userId: string,
): Promise<Spendings> {
  const nowMs = clock.now().getTime()
  const rows = await query<{ spendings: Spending[] }>(
    db,
    `with ${recentTasks}
     select data -> 'spendings' as spendings from task
     where id = any(array(select task_id from task_queue where user_id = $1)) and data ? 'spendings'
     union all select data -> 'spendings' from recent where data ? 'spendings'`,
    [userId, new Date(nowMs - readLagMs - noteErrorMs - clockToleranceMs)],
  )
  const all = rows.flatMap(({ spendings }) => spendings)
  return spendingsOf(all.filter(({ noted_ms }) => noted_ms > nowMs - readLagMs - noteErrorMs))
}

/** Throws while a further read may include the pending spend; on the last attempt the amount counts as spent. */
export function assertShown({ amount, mayClear }: PendingSpend, { isLast }: { isLast: boolean }): void {
  if (amount > 0n && mayClear && !isLast) throw new SpendingNotShown()
}
