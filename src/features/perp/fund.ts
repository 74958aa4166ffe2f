import type { Ledger } from '#durable/ledger.ts'
import type { EvmBatches } from '#engines/evm-batch/batch.ts'
import type { BatchRules, BatchTaskData } from '#engines/evm-batch/batch-rules.ts'
import type { SignedActions } from '#engines/venue/orders/signed-action.ts'
import { clockSkewMs } from '#engines/venue/orders/trade-admission.ts'
import { knownUnified } from '#engines/venue/records/account-mode.ts'
import { registerFunded } from '#engines/venue/records/account-store.ts'
import { ledgerUpdateRows } from '#engines/venue/records/expected-balances.ts'
import { addLedgerEntries } from '#engines/venue/records/record-store.ts'
import { claimedTransferKeys, claimTransfer } from '#engines/venue/records/store.ts'
import { createAdmission } from '#kernel/admission.ts'
import { assetOf } from '#kernel/chains.ts'
import type { Clock } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { exactlyOneOf, Fault, invalid } from '#kernel/fault.ts'
import { fromUnits, toUnits, usdcDecimals, usdDecimals } from '#kernel/money.ts'
import { pollAgain, pollsOf } from '#kernel/poll-again.ts'
import type { EvmCall, PlannedAction, Policy } from '#kernel/signer.ts'
import type { AccountRef, BalanceSnapshot, EndResult, StepResultOf, Steps, TaskView } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { Account, Hyperliquid, LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { Agents } from './agent-keys.ts'
import type { PerpInput } from './contract.ts'
import { type CreditTaskData, cashOf, checkForCredit } from './credit-check.ts'
import { assertRoute, chainIdOf, depositShortage, walletToken } from './funding-route.ts'
import type { FundingRoute, PerpLimits } from './limits.ts'
import { type Approval, type ApprovalTaskData, createApproval, type SetupDeps } from './setup.ts'

/** Deposits USDC from the wallet over the venue's bridge, and waits for the credit of this transfer. */

export type FundDeps = {
  db: Queryable
  venue: SetupDeps['venue'] & Pick<Hyperliquid, 'ledgerSince' | 'spotBalances' | 'accountMode'>
  signedActions: SignedActions
  agents: Agents
  batches: EvmBatches
  chain: Pick<Evm, 'balances' | 'transfers' | 'row'>
  transferCall: (token: string, to: string, amountUnits: bigint) => EvmCall
  ledger: Pick<Ledger, 'balance'>
  policy: Pick<Policy, 'check' | 'reserve'>
  evmAddressOf: (userId: string) => Promise<string>
  changed: (userId: string, chainId: string) => void
  route: FundingRoute
  clock: Clock
  limits: PerpLimits
}
type FundInput = PerpInput<'fund'>
type FundTaskData = CreditTaskData &
  BatchTaskData &
  ApprovalTaskData & {
    amount_units: string
    since_ms: number
    /** As the request named it. */
    source_token?: string
    tx_hash?: string
    credited_at?: string
    /** True where the account was empty at the venue when the task began. */
    is_first?: boolean
  }

const admissionMs = 10 * 60_000
const pollBackoff = { firstMs: 300, maxMs: 5_000 }
/** A credit can take minutes; after this time the task needs review. */
const reviewAfterMs = 60 * 60_000
const cashKey = (taskId: string) => `${taskId}:cash`

function amountOf({ amount, amount_usd }: FundInput, { minFundUsd }: PerpLimits): bigint {
  if ((amount === undefined) === (amount_usd === undefined))
    throw exactlyOneOf('amount_usd', 'amount', { hasBoth: amount_usd !== undefined })
  const units = amount_usd === undefined ? BigInt(amount!) : toUnits(amount_usd, usdcDecimals)
  if (units >= toUnits(minFundUsd, usdcDecimals)) return units
  throw invalid(
    amount === undefined ? 'amount_usd' : 'amount',
    'below_minimum',
    `Input should be at least ${minFundUsd} USDC: the bridge does not credit a smaller deposit`,
    { minimum: minFundUsd, unit: 'USDC' },
  )
}

const holdsNothing = ({ positions, unread, cashUsd }: Account): boolean =>
  positions.length + unread.length === 0 && compareDecimals(cashUsd, '0') === 0

const walletOf = (userId: string, { chain, route }: Pick<FundDeps, 'chain' | 'route'>): AccountRef => ({
  owner: userId,
  asset: assetOf(chain.row, route.token),
  subAccount: 'wallet',
})

export const admitFund = (deps: FundDeps) =>
  createAdmission({
    policy: deps.policy,
    asksPolicy: 'first',
    check: async (input: FundInput, { userId }) => checkFund(deps, input, userId),
    fund: (deposit) => fundDeposit(deps, deposit),
    start: ({ amountUnits, wallet }, { data, observed, chargeGas }) => ({
      first: 'prepare',
      deadlineMs: admissionMs,
      data,
      observed,
      hold: {
        keyOf: cashKey,
        account: wallet,
        amountUnits,
        reason: 'perp_fund',
        token: walletToken(deps.route),
      },
      writes: chargeGas,
    }),
  })

function checkFund(deps: FundDeps, input: FundInput, userId: string) {
  const { route, limits } = deps
  const { source_token: sourceToken } = input
  const given = { chain: chainIdOf(input.source_chain_id, route), token: sourceToken ?? route.symbol }
  assertRoute(route, given, { chain: 'source_chain_id', token: 'source_token' })
  const amountUnits = amountOf(input, limits)
  const action: PlannedAction = {
    userId,
    operation: 'perp_fund',
    chainId: route.chainId,
    tokens: [route.token],
    recipients: [route.bridge],
    usdMicros: amountUnits,
    exit: false,
  }
  return { action, amountUnits, sourceToken, wallet: walletOf(userId, deps) }
}
type Deposit = ReturnType<typeof checkFund>

/** The observed balance, the gas to charge, and the state of the account at the venue before the deposit. */
async function fundDeposit(deps: FundDeps, { action, amountUnits, sourceToken, wallet }: Deposit) {
  const { venue, batches, route, clock, transferCall } = deps
  const { userId } = action
  const account = await deps.evmAddressOf(userId)
  await batches.ready(route.chainId)
  const readCash = () => cashCovering(deps, { wallet, account, amountUnits })
  const [snapshots, state] = await Promise.all([readCash(), venue.account(account)])
  const trial = await batches.simulate(route.chainId, account, [
    transferCall(route.token, route.bridge, amountUnits),
  ])
  if (!trial.ok)
    throw new Fault('conflict', `The transfer would fail: ${trial.reason}`, {
      extras: { reason: trial.reason },
    })
  // An account without a key still has the default mode, and reading the mode costs much weight.
  const { current } = await deps.agents.of(userId)
  const unified = current !== undefined && knownUnified(await venue.accountMode(account))
  const chargeGas = await batches.charge({
    userId,
    chainId: route.chainId,
    gas: trial.gas,
    fullExit: false,
  })
  const data: FundTaskData = {
    account,
    amount_units: String(amountUnits),
    ahead_ms: clockSkewMs(clock, state.timeMs),
    since_ms: state.timeMs,
    unified,
    cash_seen: unified ? await cashOf(venue, { account, unified }) : state.cashUsd,
    is_first: !unified && holdsNothing(state),
    ...(sourceToken !== undefined && { source_token: sourceToken }),
  }
  return { data, chargeGas, observed: { snapshots, reread: readCash } }
}

type CashRequest = { wallet: AccountRef; account: string; amountUnits: bigint }

async function cashCovering(
  { db, ledger, chain, route }: FundDeps,
  { wallet, account, amountUnits }: CashRequest,
): Promise<BalanceSnapshot[]> {
  // Read the version before the chain: a hold that settles in between invalidates the balance.
  const { heldUnits, version } = await ledger.balance(db, wallet)
  const { tokens } = await chain.balances(account, [route.token])
  const [totalUnits] = tokens
  if (totalUnits === undefined)
    throw new Fault('unavailable', 'The chain returned no balance; try again later')
  const available = totalUnits > heldUnits ? totalUnits - heldUnits : 0n
  if (available < amountUnits) throw depositShortage(route, amountUnits, available)
  return [{ account: wallet, totalUnits, version }]
}

/** Only the transfer event on the chain proves that the deposit was sent. */
function rulesOf({ chain, route, transferCall, changed }: FundDeps): BatchRules<FundTaskData> {
  return {
    onFinal: (task) => changed(task.userId, route.chainId),
    async plan(task) {
      const { account, amount_units } = task.data
      const amountUnits = BigInt(amount_units)
      return {
        chainId: route.chainId,
        account,
        operation: 'perp_fund',
        calls: [transferCall(route.token, route.bridge, amountUnits)],
        spends: [{ token: route.token, amountUnits, spender: route.bridge }],
        tokens: [route.token],
        recipients: [route.bridge],
        usdMicros: amountUnits,
        exit: false,
      }
    },
    async settle(task, receipt) {
      const { account, amount_units } = task.data
      const same = (a: string, b: string) => a.toLowerCase() === b.toLowerCase()
      const moved = chain
        .transfers(receipt)
        .some(
          (each) =>
            same(each.token, route.token) &&
            same(each.from, account) &&
            same(each.to, route.bridge) &&
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

export function fundSteps(
  deps: FundDeps,
): Steps<FundTaskData, 'prepare' | 'confirm' | 'credit' | 'approved'> {
  const { db, venue, signedActions, agents, batches, route } = deps
  const { prepare, confirm } = batches.steps(rulesOf(deps))
  const approvalSteps: Approval = createApproval({ venue, signedActions, agents } satisfies Pick<
    SetupDeps,
    'venue' | 'signedActions' | 'agents'
  >)

  const credited = ({ data }: TaskView<FundTaskData>, at: string): EndResult<Record<never, never>> => {
    const { amount_units, tx_hash = '', source_token } = data
    const amount = fromUnits(BigInt(amount_units), usdcDecimals)
    return {
      end: 'completed',
      outcome: 'executed',
      result: {
        amount: amount_units,
        amount_usd: amount,
        fee_usd: '0',
        chain_id: route.chainId,
        token_address: route.token,
        tx_hash,
        credited_at: at,
        ...(source_token !== undefined && { source_token }),
      },
    }
  }

  const creditOf = async (
    task: TaskView<FundTaskData>,
  ): Promise<{ key: string; update: LedgerUpdate } | undefined> => {
    const { account, since_ms, amount_units } = task.data
    const wanted = fromUnits(BigInt(amount_units), usdDecimals)
    const updates = (await venue.ledgerSince(account, since_ms))
      .filter(
        ({ type, amountUsd }) =>
          type === 'deposit' && amountUsd !== null && compareDecimals(amountUsd, wanted) === 0,
      )
      .map((update) => ({ key: `deposit:${account}:${update.atMs}:${update.hash}`, update }))
    const taken = await claimedTransferKeys(
      db,
      updates.map(({ key }) => key),
      task.id,
    )
    return updates.find(({ key }) => !taken.has(key))
  }

  return {
    prepare,
    /** A mined transfer is not credited yet: continue with `credit` instead of ending the task. */
    async confirm(task, context) {
      const result = await confirm(task, context)
      if (!('end' in result) || result.end !== 'completed') return result
      const { data, moves, effects, events, writes } = result
      return {
        next: 'credit',
        state: 'waiting',
        ...(data && { data: { ...data, polls: 0 } }),
        ...(moves && { moves }),
        ...(effects && { effects }),
        ...(events && { events }),
        ...(writes && { writes }),
      }
    },

    async credit(task, context) {
      const { now } = context
      const { isNew, data } = await checkForCredit(venue, task.data, pollsOf(task))
      const found = isNew ? await creditOf(task) : undefined
      if (!found) return waitForTransfer(task, now, 'credit', data)
      const at = new Date(found.update.atMs).toISOString()
      const writes = async (tx: Parameters<typeof claimTransfer>[0]) => {
        const mine = await claimTransfer(tx, {
          key: found.key,
          userId: task.userId,
          taskId: task.id,
          at: now,
        })
        if (!mine) throw new Fault('unavailable', 'The credit was claimed by another task')
        if (!task.data.is_first) return
        // Register in this commit, so that the record contains every fill from the first one on.
        await registerFunded(tx, { userId: task.userId, account: task.data.account, now })
        await addLedgerEntries(tx, { user_id: task.userId }, ledgerUpdateRows(found.update))
      }
      const { waiting: agent } = await agents.of(task.userId)
      if (!agent) return { ...credited(task, at), writes }
      const signed = await approvalSteps.sign(task, context, agent.address, {
        next: 'approved',
        operation: 'perp_fund',
        writes,
        onRefused: () => ({ ...credited(task, at), writes }),
      })
      return { ...signed, data: { ...signed.data, credited_at: at } }
    },

    /** The deposit is complete even where the approval fails: the set-up approves the key again. */
    async approved(task, context) {
      const actionOutcome = await approvalSteps.confirm(task, context)
      const { effects } = actionOutcome
      if (actionOutcome.type === 'unknown') return signedActions.pollLater(task, 'approved', actionOutcome)
      const end = { ...credited(task, task.data.credited_at ?? ''), effects }
      return actionOutcome.type === 'executed'
        ? { ...end, writes: approvalSteps.recordApproval(task, context, actionOutcome.value.validUntilMs) }
        : end
    },
  }
}

/** The transfer was sent, so the task never fails; after a long wait it needs review by an operator. */
export function waitForTransfer<Name extends string, Data = unknown>(
  task: TaskView<{ polls?: number }>,
  now: Date,
  next: Name,
  data?: Data,
): StepResultOf<{ polls: number } | (Data & { polls: number }), Name> {
  const { park, data: counted } = pollAgain(task, next, pollBackoff)
  const isLate = now.getTime() - task.createdAt.getTime() > reviewAfterMs
  return {
    park: { afterMs: isLate ? 12 * pollBackoff.maxMs : park.afterMs, next },
    ...(isLate ? { state: 'review', outcome: 'unknown' } : { state: 'waiting' }),
    data: { ...data, ...counted },
  }
}
