import type { ActPlan, VenueActs } from '#features/venue/act.ts'
import { cashPlace } from '#features/venue/agreement.ts'
import { type CashSource, contradiction, explainedTransfers } from '#features/venue/cash-evidence.ts'
import { collateralFor, portionFor, spotCashMicros } from '#features/venue/collateral.ts'
import { type Gathering, portionNone } from '#features/venue/gather.ts'
import { failed, failedBy, type PlaceNeeds } from '#features/venue/place.ts'
import { rereadBalances } from '#features/venue/read-after-write.ts'
import { noteErrorMs, notePaid, recentSpendings } from '#features/venue/spending.ts'
import { claim } from '#features/venue/store.ts'
import { aheadOf } from '#features/venue/trade.ts'
import type { Caller } from '#kernel/caller.ts'
import type { Clock } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault, invalid } from '#kernel/fault.ts'
import { fromUnits, toUnits, usdDecimals } from '#kernel/money.ts'
import type { Action, Policy } from '#kernel/signer.ts'
import type { Admission, EffectUpdate, JsonObject, Step, StepContext, TaskView } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import { waiting } from './fund.ts'
import type { PerpLimits, Way } from './limits.ts'
import { isPaid, isUpTo, type Payout, payoutSearch } from './payout.ts'
import { chainIdOf, demandWay } from './way.ts'

/** Collateral to the user's own wallet: taken by the venue at once, and then paid out by its bridge. */

export type WithdrawNeeds = {
  on: Queryable
  venue: Pick<Hyperliquid, 'account' | 'ledgerSince' | 'spotBalances' | 'accountMode'> & CashSource
  acts: VenueActs
  chain: Pick<Evm, 'head' | 'arrivals' | 'row'>
  policy: Pick<Policy, 'check' | 'reserve'>
  evmAddressOf: (userId: string) => Promise<string>
  changed: (userId: string, chainId: string) => void
  way: Way
  chainId: string
  clock: Clock
  limits: PerpLimits
} & Pick<PlaceNeeds, 'refusals'>
export type WithdrawInput = {
  amount_usd: string
  destination_chain_id?: string | number
  destination_token?: string
}
type Memory = {
  account: string
  amount_usd: string
  /** What arrives, by the venue's own record of the withdrawal; absent until that shows up. */
  payout?: Payout
  ahead_ms: number
  since_ms: number
  /** The next block to look for the arrival in. */
  from_block: string
  /** Dollars that have to come over from the spot side first. */
  gather: string | null
  /** Cash of the perpetuals side at admission, at the venue's time `since_ms`. */
  cash_before: string
  /** Free dollars at admission of an account with one balance for both sides, in micro-dollars; otherwise null. */
  unified_free_before: string | null
}

const usdcDecimals = 6
const admissionMs = 10 * 60_000
/** How many looks at the chain lie between two questions for the list. */
const askAgainPolls = 6
/** The list shows a withdrawal only when it is paid: until then its absence says nothing. */
const graceMs = 15 * 60_000
const memoryOf = (task: TaskView) => task.data as unknown as Memory

const factsOf = (account: string): ActPlan['facts'] => ({
  operation: 'perp_withdraw',
  tokens: ['USDC'],
  recipients: [account],
  usdMicros: 0n,
  exit: true,
})

export const admitWithdraw = (
  needs: WithdrawNeeds,
  input: WithdrawInput,
  { userId }: Pick<Caller, 'userId'>,
): Promise<Admission> => rereadBalances(needs, userId, (isLast) => admitOnce(needs, input, userId, isLast))

async function admitOnce(
  needs: WithdrawNeeds,
  input: WithdrawInput,
  userId: string,
  isLast: boolean,
): Promise<Admission> {
  const { venue, chain, policy, way, chainId, clock, limits } = needs
  const { amount_usd: amountUsd } = input
  const given = {
    chain: chainIdOf(input.destination_chain_id, way),
    token: input.destination_token ?? way.symbol,
  }
  demandWay(way, given, { chain: 'destination_chain_id', token: 'destination_token' })
  const minimum = limits.minWithdrawUsd
  if (compareDecimals(amountUsd, minimum) < 0)
    throw invalid('body.amount_usd', 'below_minimum', `Input should be at least ${minimum} USD`, {
      minimum,
      unit: 'USD',
      fee: limits.withdrawFeeUsd,
    })
  const account = await needs.evmAddressOf(userId)
  const action: Omit<Action, 'taskId'> = { userId, chainId, ...factsOf(account) }
  await policy.check(action)
  const [state, head, spendings] = await Promise.all([
    venue.account(account),
    chain.head(),
    recentSpendings(needs, userId),
  ])
  let freeBefore: bigint | null = null
  const portion = await portionFor(
    {
      what: 'The withdrawal',
      required: toUnits(amountUsd, usdDecimals),
      available: toUnits(floored(state.withdrawableUsd), usdDecimals),
      unseen: spendings.perpCash(state),
      isLast,
      isExit: true,
    },
    async (missing) => {
      const found = await collateralFor(venue, account, missing, spendings)
      if (found.portion === portionNone) freeBefore = found.otherMicros
      return found
    },
  )
  const memory: Memory = {
    account,
    amount_usd: amountUsd,
    ahead_ms: aheadOf(clock, state.timeMs),
    since_ms: state.timeMs,
    from_block: String(head.number + 1n),
    ...portion,
    cash_before: state.cashUsd,
    unified_free_before: freeBefore === null ? null : String(freeBefore),
  }
  return {
    first: 'begin',
    deadlineMs: admissionMs,
    data: memory as unknown as JsonObject,
    also: (tx, taskId) => policy.reserve(tx, { ...action, taskId }),
  }
}

const floored = (usd: string): string => {
  const [whole = '0', fraction = ''] = usd.split('.')
  return fraction === '' ? whole : `${whole}.${fraction.slice(0, usdDecimals)}`
}

export function withdrawing(
  needs: WithdrawNeeds & { gathering: Gathering },
): Record<'begin' | 'gathered' | 'withdraw' | 'confirm' | 'arrive', Step> {
  const { venue, acts, chain, way, changed, refusals, gathering } = needs
  const { arrivalOf, assertNotArrived, ownIn, payoutOf } = payoutSearch(needs)

  const send = async (task: TaskView, { now }: StepContext, effects: EffectUpdate[]) => {
    const { account, amount_usd: amount, ahead_ms: aheadMs } = memoryOf(task)
    const plan: ActPlan = {
      leg: 'withdraw',
      account,
      agent: account,
      aheadMs,
      ttlMs: 0,
      facts: factsOf(account),
      action: { type: 'withdraw', destination: account, amount },
    }
    const refused = (fault: Fault) => failedBy(fault, effects)
    return acts.intend(task, plan, { now, next: 'confirm', effects, refused })
  }

  /** The transfers of the account; throws where its balance shows a payout that they do not. */
  const agreedTransfers = async (task: TaskView): Promise<LedgerUpdate[]> => {
    const { account, amount_usd, since_ms: sinceMs, cash_before, unified_free_before } = memoryOf(task)
    if (unified_free_before === null)
      return explainedTransfers(venue, account, { place: cashPlace, total: cash_before, sinceMs })
    // Trades move this balance too, so that only its size is compared.
    const lost = BigInt(unified_free_before) - (await spotCashMicros(venue, account))
    if (lost >= toUnits(amount_usd, usdDecimals)) throw contradiction('the free balance went down')
    return venue.ledgerSince(account, sinceMs)
  }

  return {
    async begin(task, context) {
      if (memoryOf(task).gather === null) return send(task, context, [])
      const facts = { operation: 'perp_withdraw', exit: true }
      return gathering.intend(task, context, facts, (fault) => failedBy(fault))
    },

    async gathered(task, context) {
      const verdict = await gathering.settle(task, context)
      const { effects } = verdict
      if (verdict.is === 'doubt') return acts.wait(task, 'gathered', verdict)
      if (verdict.is !== 'done')
        return failed(refusals.codeOfRefusal(verdict.message), verdict.message, effects)
      return gathering.store(task, context, verdict.value, await send(task, context, effects))
    },

    withdraw: (task, context) => send(task, context, []),

    async confirm(task, { signal, now }) {
      const { account, since_ms } = memoryOf(task)
      const verdict = await acts.settle<true>({
        task,
        leg: 'withdraw',
        signal,
        graceMs,
        read: () => true,
        async look({ isLast }) {
          if (ownIn(task, await venue.ledgerSince(account, since_ms))) return true
          if (!isLast) return undefined
          // The list that agrees with the balance may be newer than the one above.
          if (ownIn(task, await agreedTransfers(task))) return true
          await assertNotArrived(task)
          return undefined
        },
      })
      const { effects } = verdict
      if (verdict.is === 'doubt') return acts.wait(task, 'confirm', verdict)
      const retry = acts.retryThrottled(task, verdict, { leg: 'withdraw', next: 'withdraw', now })
      if (retry) return retry
      if (verdict.is !== 'done')
        return failed(refusals.codeOfRefusal(verdict.message), verdict.message, effects)
      const { amount_usd: amount, unified_free_before: unified, ahead_ms: aheadMs } = memoryOf(task)
      const atMs = now.getTime() + aheadMs + noteErrorMs
      const paid = notePaid(task, { side: unified === null ? 'perp' : 'spot', amount, atMs, now })
      return { next: 'arrive', state: 'waiting', effects, data: { polls: 0, ...paid } }
    },

    async arrive(task, { now }) {
      const { amount_usd, from_block } = memoryOf(task)
      const asked = toUnits(amount_usd, usdcDecimals)
      const from = BigInt(from_block)
      const { number: to } = await chain.head()
      if (to < from) return waiting(task, now, 'arrive')
      // The list of the venue shows the withdrawal when it is paid, minutes later, and costs of the request budget: it
      // is asked once the chain shows what may be the payout.
      const known = memoryOf(task).payout
      const near = await arrivalOf(task, { from, to }, known ? isPaid(known) : isUpTo(asked))
      let payout = known
      if (!known && near.found) {
        const polls = Number(task.data.polls ?? 0)
        const askedAt = Number(task.data.asked_poll ?? -askAgainPolls)
        if (polls - askedAt < askAgainPolls) return waiting(task, now, 'arrive')
        payout = await payoutOf(task)
        if (!payout) return waiting(task, now, 'arrive', { asked_poll: polls })
      }
      const { found, searchedTo } =
        payout && !known ? await arrivalOf(task, { from, to }, isPaid(payout)) : near
      // The last blocks are searched again: a reorganised one may bring what the first look did not show.
      if (!found) {
        const searched = searchedTo - BigInt(chain.row.confirmations)
        const next = searched >= from ? searched + 1n : from
        return waiting(task, now, 'arrive', { from_block: String(next), ...(payout && { payout }) })
      }
      const { key, arrival } = found
      const paid = arrival.amountUnits
      changed(task.userId, way.chainId)
      return {
        end: 'completed',
        outcome: 'executed',
        result: {
          // `amount` is what arrived, in both forms; with the fee it is what left the venue.
          amount: String(paid),
          amount_usd: fromUnits(paid, usdcDecimals),
          fee_usd: fromUnits(asked - paid, usdcDecimals),
          withdrawn_usd: amount_usd,
          chain_id: way.chainId,
          token_address: way.token,
          tx_hash: arrival.txHash,
          credited_at: now.toISOString(),
          moved_from_spot_usd: memoryOf(task).gather,
        },
        data: { balance_changes: [arrived(way, String(paid))] },
        async also(tx) {
          const mine = await claim(tx, { key, userId: task.userId, taskId: task.id, at: now })
          if (!mine) throw new Fault('unavailable', 'The arrival belongs to another task')
        },
      }
    },
  }
}

const arrived = (way: Way, units: string): JsonObject => ({
  chain_id: way.chainId,
  token_address: way.token,
  symbol: way.symbol,
  amount: units,
  decimals: usdcDecimals,
})
