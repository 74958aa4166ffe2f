import type { Ledger } from '#durable/ledger.ts'
import type { BatchRules, EvmBatches } from '#features/chains/batch.ts'
import { knownUnified } from '#features/venue/account-mode.ts'
import { registerFunded } from '#features/venue/account-store.ts'
import type { VenueActs } from '#features/venue/act.ts'
import { updateRows } from '#features/venue/agreement.ts'
import { addChanges } from '#features/venue/record-store.ts'
import { claim, claimedKeys } from '#features/venue/store.ts'
import { aheadOf } from '#features/venue/trade.ts'
import type { Caller } from '#kernel/caller.ts'
import { assetOf } from '#kernel/chains.ts'
import type { Clock } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault, invalid } from '#kernel/fault.ts'
import { fromUnits, toUnits, usdDecimals } from '#kernel/money.ts'
import type { Action, EvmCall, Policy } from '#kernel/signer.ts'
import {
  type AccountRef,
  type Admission,
  type JsonObject,
  type Observation,
  outside,
  type Step,
  type StepResult,
  type TaskView,
} from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { Account, Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type CreditMemory, cashOf, creditSigns } from './credit-signs.ts'
import type { PerpLimits, Way } from './limits.ts'
import { type Agents, type Approval, approval, type SetupNeeds } from './setup.ts'
import { chainIdOf, demandWay, depositShortage, walletToken } from './way.ts'

/** USDC from the wallet to the venue's bridge, and then the credit of exactly this transfer. */

export type FundNeeds = {
  on: Queryable
  venue: SetupNeeds['venue'] & Pick<Hyperliquid, 'ledgerSince' | 'spotBalances' | 'accountMode'>
  acts: VenueActs
  agents: Agents
  batches: EvmBatches
  chain: Pick<Evm, 'balances' | 'transfers' | 'row'>
  transferCall: (token: string, to: string, amountUnits: bigint) => EvmCall
  ledger: Pick<Ledger, 'balance'>
  policy: Pick<Policy, 'check' | 'reserve'>
  evmAddressOf: (userId: string) => Promise<string>
  changed: (userId: string, chainId: string) => void
  way: Way
  clock: Clock
  limits: PerpLimits
}
export type FundInput = {
  amount?: string | number
  amount_usd?: string
  source_chain_id?: string | number
  source_token?: string
}
type Memory = CreditMemory & {
  amount_units: string
  ahead_ms: number
  since_ms: number
  tx_hash?: string
  credited_at?: string
  /** The account held nothing at the venue when the task began. */
  is_first?: boolean
}

const usdcDecimals = 6
const admissionMs = 10 * 60_000
const pollFirstMs = 300
const pollMostMs = 5_000
/** A credit takes minutes on a bad day; after this somebody should look. */
const reviewAfterMs = 60 * 60_000
const memoryOf = (task: TaskView) => task.data as unknown as Memory
const cashKey = (taskId: string) => `${taskId}:cash`

function amountOf({ amount, amount_usd }: FundInput, { minFundUsd }: PerpLimits): bigint {
  if ((amount === undefined) === (amount_usd === undefined))
    throw invalid('body.amount_usd', 'exactly_one_of', 'Exactly one of amount and amount_usd is required', {
      fields: ['amount', 'amount_usd'],
    })
  const units = amount_usd === undefined ? BigInt(amount!) : toUnits(amount_usd, usdcDecimals)
  if (units >= toUnits(minFundUsd, usdcDecimals)) return units
  throw invalid(
    amount === undefined ? 'body.amount_usd' : 'body.amount',
    'below_minimum',
    `Input should be at least ${minFundUsd} USDC: the bridge keeps less without a credit`,
    { minimum: minFundUsd, unit: 'USDC' },
  )
}

const holdsNothing = ({ positions, unread, cashUsd }: Account): boolean =>
  positions.length + unread.length === 0 && compareDecimals(cashUsd, '0') === 0

const walletOf = (userId: string, { chain, way }: Pick<FundNeeds, 'chain' | 'way'>): AccountRef => ({
  owner: userId,
  asset: assetOf(chain.row, way.token),
  book: 'wallet',
})

export async function admitFund(needs: FundNeeds, input: FundInput, { userId }: Caller): Promise<Admission> {
  const { on, venue, batches, chain, ledger, policy, way, clock, limits, transferCall } = needs
  const given = { chain: chainIdOf(input.source_chain_id, way), token: input.source_token ?? way.symbol }
  demandWay(way, given, { chain: 'source_chain_id', token: 'source_token' })
  const amountUnits = amountOf(input, limits)
  const action: Omit<Action, 'taskId'> = {
    userId,
    operation: 'perp_fund',
    chainId: way.chainId,
    tokens: [way.token],
    recipients: [way.bridge],
    usdMicros: amountUnits,
    exit: false,
  }
  await policy.check(action)
  const account = await needs.evmAddressOf(userId)
  await batches.ready(way.chainId)
  const wallet = walletOf(userId, needs)
  const observed = async (): Promise<Observation[]> => {
    // The counter is read before the chain is asked: a hold that settles in between makes the answer worthless.
    const { heldUnits, settlements } = await ledger.balance(on, wallet)
    const { tokens } = await chain.balances(account, [way.token])
    const [totalUnits] = tokens
    if (totalUnits === undefined) throw new Fault('unavailable', 'The chain tells no balance')
    const available = totalUnits > heldUnits ? totalUnits - heldUnits : 0n
    if (available < amountUnits) throw depositShortage(way, amountUnits, available)
    return [{ account: wallet, totalUnits, settlements }]
  }
  const [observe, state] = await Promise.all([observed(), venue.account(account)])
  const trial = await batches.simulate(way.chainId, account, [
    transferCall(way.token, way.bridge, amountUnits),
  ])
  if (!trial.ok)
    throw new Fault('conflict', `The transfer would fail: ${trial.reason}`, {
      extras: { reason: trial.reason },
    })
  // An account without a key has no mode of its own yet, and asking for it is dear.
  const { current } = await needs.agents.of(userId)
  const unified = current !== undefined && knownUnified(await venue.accountMode(account))
  const chargeGas = await batches.charge({
    userId,
    chainId: way.chainId,
    gas: trial.gas,
    fullExit: false,
  })
  const memory: Memory = {
    account,
    amount_units: String(amountUnits),
    ahead_ms: aheadOf(clock, state.timeMs),
    since_ms: state.timeMs,
    unified,
    cash_seen: unified ? await cashOf(venue, { account, unified }) : state.cashUsd,
    is_first: !unified && holdsNothing(state),
  }
  return {
    first: 'prepare',
    deadlineMs: admissionMs,
    data: memory as unknown as JsonObject,
    observe,
    reobserve: observed,
    moves: (taskId) => [
      {
        move: 'hold',
        key: cashKey(taskId),
        debit: wallet,
        credit: outside(wallet.asset),
        amountUnits,
        reason: 'perp_fund',
        token: walletToken(way),
      },
    ],
    also: async (tx, taskId) => {
      await policy.reserve(tx, { ...action, taskId })
      await chargeGas(tx, taskId)
    },
  }
}

/** The transfer as the chain shows it; nothing else proves that the money is on its way. */
function rulesOf({ chain, way, transferCall, changed }: FundNeeds): BatchRules {
  return {
    landed: (task) => changed(task.userId, way.chainId),
    async plan(task) {
      const { account, amount_units } = memoryOf(task)
      const amountUnits = BigInt(amount_units)
      return {
        chainId: way.chainId,
        account,
        operation: 'perp_fund',
        calls: [transferCall(way.token, way.bridge, amountUnits)],
        spends: [{ token: way.token, amountUnits, spender: way.bridge }],
        tokens: [way.token],
        recipients: [way.bridge],
        usdMicros: amountUnits,
        exit: false,
      }
    },
    async settle(task, receipt) {
      const { account, amount_units } = memoryOf(task)
      const same = (a: string, b: string) => a.toLowerCase() === b.toLowerCase()
      const moved = chain
        .transfers(receipt)
        .some(
          (each) =>
            same(each.token, way.token) &&
            same(each.from, account) &&
            same(each.to, way.bridge) &&
            each.amountUnits === BigInt(amount_units),
        )
      if (!moved) return undefined
      return {
        result: { tx_hash: receipt.txHash },
        moves: [{ move: 'post', key: cashKey(task.id) }],
        data: { tx_hash: receipt.txHash },
      }
    },
  }
}

export function funding(needs: FundNeeds): Record<'prepare' | 'confirm' | 'credit' | 'approved', Step> {
  const { on, venue, acts, agents, batches, way } = needs
  const { prepare, confirm } = batches.steps(rulesOf(needs))
  const approving: Approval = approval({ venue, acts, agents } satisfies Pick<
    SetupNeeds,
    'venue' | 'acts' | 'agents'
  >)

  const credited = ({ data, input }: TaskView, at: string): StepResult => {
    const { amount_units, tx_hash = '' } = data as unknown as Memory
    const amount = fromUnits(BigInt(amount_units), usdcDecimals)
    return {
      end: 'completed',
      outcome: 'executed',
      result: {
        amount: amount_units,
        amount_usd: amount,
        fee_usd: '0',
        chain_id: way.chainId,
        token_address: way.token,
        tx_hash,
        credited_at: at,
        ...(input.source_token !== undefined && { source_token: input.source_token }),
      },
    }
  }

  const creditOf = async (task: TaskView): Promise<{ key: string; update: LedgerUpdate } | undefined> => {
    const { account, since_ms, amount_units } = memoryOf(task)
    const wanted = fromUnits(BigInt(amount_units), usdDecimals)
    const updates = (await venue.ledgerSince(account, since_ms))
      .filter(
        ({ type, amountUsd }) =>
          type === 'deposit' && amountUsd !== null && compareDecimals(amountUsd, wanted) === 0,
      )
      .map((update) => ({ key: `deposit:${account}:${update.atMs}:${update.hash}`, update }))
    const taken = await claimedKeys(
      on,
      updates.map(({ key }) => key),
      task.id,
    )
    return updates.find(({ key }) => !taken.has(key))
  }

  return {
    prepare,
    /** Mined is not credited: where the batch would end the task, the waiting begins. */
    async confirm(task, context) {
      const result = await confirm(task, context)
      if (!('end' in result) || result.end !== 'completed') return result
      const { data, moves, effects, events, also } = result
      return {
        next: 'credit',
        state: 'waiting',
        ...(data && { data: { ...data, polls: 0 } }),
        ...(moves && { moves }),
        ...(effects && { effects }),
        ...(events && { events }),
        ...(also && { also }),
      }
    },

    async credit(task, context) {
      const { now } = context
      const { isNew, data } = await creditSigns(venue, memoryOf(task), task.data.polls)
      const found = isNew ? await creditOf(task) : undefined
      if (!found) return waiting(task, now, 'credit', data)
      const at = new Date(found.update.atMs).toISOString()
      const also = async (tx: Parameters<typeof claim>[0]) => {
        const mine = await claim(tx, { key: found.key, userId: task.userId, taskId: task.id, at: now })
        if (!mine) throw new Fault('unavailable', 'The credit belongs to another task')
        if (!memoryOf(task).is_first) return
        // From here on every fill of the account is ours to tell, also those of the next moment.
        await registerFunded(tx, { userId: task.userId, account: memoryOf(task).account, now })
        await addChanges(tx, { user_id: task.userId }, updateRows(found.update))
      }
      const { waiting: agent } = await agents.of(task.userId)
      if (!agent) return { ...credited(task, at), also }
      const intended = await approving.intend(task, context, agent.address, {
        next: 'approved',
        operation: 'perp_fund',
        also,
        refused: () => ({ ...credited(task, at), also }),
      })
      return { ...intended, data: { ...intended.data, credited_at: at } }
    },

    /** The money is there whatever becomes of the key: an approval that failed is asked for again by the set-up. */
    async approved(task, context) {
      const verdict = await approving.settle(task, context)
      const { effects } = verdict
      if (verdict.is === 'doubt') return acts.wait(task, 'approved', verdict)
      const end = { ...credited(task, memoryOf(task).credited_at ?? ''), effects }
      return verdict.is === 'done'
        ? { ...end, also: approving.store(task, context, verdict.value.validUntilMs) }
        : end
    },
  }
}

/** The money has left the wallet, so that this never becomes a failure; it becomes a question to an operator. */
export function waiting(task: TaskView, now: Date, next = 'credit', data: JsonObject = {}): StepResult {
  const polls = Number(task.data.polls ?? 0)
  const afterMs = Math.min(pollFirstMs * 2 ** Math.min(polls, 10), pollMostMs)
  const late = now.getTime() - task.createdAt.getTime() > reviewAfterMs
  return {
    park: { afterMs: late ? 12 * pollMostMs : afterMs, next },
    ...(late ? { state: 'review', outcome: 'unknown' } : { state: 'waiting' }),
    data: { ...data, polls: polls + 1 },
  }
}
