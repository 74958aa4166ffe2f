import type { BatchRules } from '#engines/evm-batch/batch-rules.ts'
import { registerFunded } from '#engines/venue/records/account-store.ts'
import { ledgerUpdateRows } from '#engines/venue/records/expected-balances.ts'
import { addLedgerEntries } from '#engines/venue/records/record-store.ts'
import { claimedTransferKeys, claimTransfer } from '#engines/venue/records/store.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import { fromUnits, usdcDecimals, usdDecimals } from '#kernel/money.ts'
import { pollAgain, pollsOf } from '#kernel/poll-again.ts'
import type { EndResult, StepResultOf, Steps, TaskView } from '#kernel/task.ts'
import type { LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import { checkForCredit } from './credit-check.ts'
import { cashKey, type FundDeps, type FundTaskData } from './fund-admission.ts'
import { type Approval, createApproval, type SetupDeps } from './setup.ts'

/** Deposits USDC from the wallet over the venue's bridge, and waits for the credit of this transfer. */

const pollBackoff = { firstMs: 300, maxMs: 5_000 }
/** A credit can take minutes; after this time the task needs review. */
const reviewAfterMs = 60 * 60_000

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
