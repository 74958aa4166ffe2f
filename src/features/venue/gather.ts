import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import { sha256 } from '#kernel/id.ts'
import { fromUnits, toUnits, usdDecimals } from '#kernel/money.ts'
import type { StepContext, StepResult, TaskView, Tx } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import { knownUnified } from './account-mode.ts'
import type { ActPlan, VenueActs, Verdict } from './act.ts'
import { spotPlace } from './agreement.ts'
import { type CashSource, explainedTransfers } from './cash-evidence.ts'
import { notePaid, type Spendings, type Unseen } from './spending.ts'
import { claim, claimedKeys } from './store.ts'

/** Dollars that lie on the other side of the account come over by themselves, as a step of the task that needs them. */

const scale = 18
const leg = 'gather'

export type Missing = { missingMicros: bigint; spareMicros?: bigint }
/** What comes over, and how much less of it would do: within that each task moves an amount of its own. */
export type Portion = { gather: string | null; gather_play: string }
/** One balance serves both sides. */
export const portionNone: Portion = { gather: null, gather_play: '0' }

/** The venue tells no more of a transfer than its amount, so that two of one amount could be taken for each other. */
const playMost = 10_000n

/** What is missing and, as far as it goes, the spare; null where the other side does not have that much. */
function portion(freeMicros: bigint, { missingMicros, spareMicros = playMost }: Missing): Portion | null {
  if (freeMicros < missingMicros) return null
  const wanted = missingMicros + spareMicros
  const most = wanted < freeMicros ? wanted : freeMicros
  // The other half is what the spare is for.
  const half = (most - missingMicros) / 2n
  const play = half < playMost ? half : playMost
  return { gather: fromUnits(most, usdDecimals), gather_play: String(play) }
}

function amountOf(taskId: string, { gather, gather_play = '0' }: Memory): string {
  const most = toUnits(gather ?? '0', usdDecimals)
  const share = BigInt(`0x${sha256(`${taskId}:${leg}`).slice(0, 12)}`)
  return fromUnits(most - (share % (BigInt(gather_play) + 1n)), usdDecimals)
}

const microsOf = (text: string): bigint => toUnits(text, scale) / 10n ** BigInt(scale - usdDecimals)

/** The amount to move from the spot side, of its free dollars; null where they cannot make up for what is missing. */
export const movable = (freeMicros: bigint, missing: Missing): Portion | null => portion(freeMicros, missing)

/** The same from the perpetual side, of what no position needs; with one balance there is nothing to move. */
export async function movableFromPerp(
  venue: Pick<Hyperliquid, 'account' | 'accountMode'>,
  account: string,
  missing: Missing,
  spendings: Spendings,
): Promise<{ portion: Portion | undefined; otherMicros: bigint; unseen: Unseen }> {
  const [state, mode] = await Promise.all([venue.account(account), venue.accountMode(account)])
  const unseen = spendings.perpCash(state)
  if (knownUnified(mode)) return { portion: undefined, otherMicros: 0n, unseen }
  const otherMicros = microsOf(state.withdrawableUsd)
  return { portion: portion(otherMicros - unseen.amount, missing) ?? undefined, otherMicros, unseen }
}

type Gathered = { key: string; atMs: number }
type Memory = {
  account: string
  ahead_ms: number
  since_ms: number
  gather: string | null
  gather_play?: string
  /** USDC of the spot side just before the transfer was signed. */
  spot_before?: string
}
const memoryOf = (task: TaskView) => task.data as unknown as Memory

type Needs = {
  on: Queryable
  venue: Pick<Hyperliquid, 'ledgerSince' | 'spotBalances'> & CashSource
  acts: VenueActs
  /** The side that needs the money. */
  to: 'perp' | 'spot'
}

const otherSide = { perp: 'spot', spot: 'perpetual' } as const

export type Gathering = {
  intend(
    task: TaskView,
    context: StepContext,
    facts: Pick<ActPlan['facts'], 'operation' | 'exit'>,
    refused: (fault: Fault) => StepResult,
  ): Promise<StepResult>
  settle(task: TaskView, context: StepContext): Promise<Verdict<Gathered>>
  /** The result with which the task goes on: its commit stores that the transfer belongs to this task. */
  store(task: TaskView, context: StepContext, found: Gathered, onward: StepResult): StepResult
}

export const gathering = ({ on, venue, acts, to }: Needs): Gathering => ({
  async intend(task, { now }, { operation, exit }, refused) {
    const memory = memoryOf(task)
    const { account, ahead_ms: aheadMs } = memory
    const amount = amountOf(task.id, memory)
    const plan: ActPlan = {
      leg,
      account,
      agent: account,
      aheadMs,
      ttlMs: 0,
      facts: { operation, exit, tokens: ['USDC'], recipients: [], usdMicros: 0n },
      action: { type: 'move_cash', amount, to },
    }
    const progress = { step: 1, of: 2, text: `Moving ${amount} USDC from the ${otherSide[to]} side` }
    // From here on the task remembers what really comes over.
    const usdc = (await venue.spotBalances(account, ['USDC'])).find(({ coin }) => coin === 'USDC')
    const data = { progress, gather: amount, gather_play: '0', spot_before: usdc?.total ?? '0' }
    return acts.intend(task, plan, { now, next: 'gathered', data, refused })
  },

  settle: (task, { signal }) => {
    const { account, since_ms: sinceMs, gather, spot_before: total = '0' } = memoryOf(task)
    const ownOf = async (updates: LedgerUpdate[]): Promise<Gathered | undefined> => {
      const transfers = updates
        .filter(({ type, toPerp }) => type === 'accountClassTransfer' && toPerp === (to === 'perp'))
        .filter(({ amountUsd }) => amountUsd !== null && compareDecimals(amountUsd, gather ?? '0') === 0)
        .map(({ atMs, hash }) => ({ key: `transfer:${account}:${atMs}:${hash}`, atMs }))
      const taken = await claimedKeys(
        on,
        transfers.map(({ key }) => key),
        task.id,
      )
      return transfers.find(({ key }) => !taken.has(key))
    }
    return acts.settle<Gathered>({
      task,
      leg,
      signal,
      read: () => undefined,
      async look({ isLast }) {
        const own = await ownOf(await venue.ledgerSince(account, sinceMs))
        if (own || !isLast) return own
        // The list that explains the balance may be newer than the one above.
        return ownOf(await explainedTransfers(venue, account, { place: spotPlace('USDC'), total, sinceMs }))
      },
    })
  },

  store: (task, { now }, { key, atMs }, onward) => {
    const { gather, spot_before: before } = memoryOf(task)
    const side = to === 'perp' ? 'spot' : 'perp'
    const paid = notePaid(task, { side, amount: gather ?? '0', ...(before && { before }), atMs, now })
    return {
      ...onward,
      data: { ...onward.data, ...paid },
      async also(tx: Tx) {
        const mine = await claim(tx, { key, userId: task.userId, taskId: task.id, at: now })
        if (!mine) throw new Fault('unavailable', 'The transfer belongs to another task')
      },
    }
  },
})
