import type { NonceSequences } from '#durable/run/nonces.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { sumChanges } from '#kernel/money/balance-changes.ts'
import { addToResult, type EffectContext, notExecuted, type Settled } from '#kernel/task/effect-steps.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import {
  pollBackoff,
  reviewResult,
  silentResult,
  updateOf,
  watchedBackoff,
} from '#kernel/task/sponsored-effect.ts'
import type { EndResult, JsonObject, StepResultOf, TaskView } from '#kernel/task/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import {
  awaitFinality,
  type ChainState,
  type ConfirmContext,
  finalBlockOf,
  hashesOf,
  newestOf,
  type ReceiptState,
  readChainState,
  receiptStateOf,
  sequenceOf,
} from './await-finality.ts'
import { type BatchOptions, type BatchStepResult, type BatchTaskData, effectKind } from './batch-plan.ts'
import type { EvmPort } from './evm-chain-parts.ts'
import { cancelInvalid, reassignNonce, replaceStuck } from './tx-replacement.ts'
import { balanceChangesOf, transactionsOf } from './tx-views.ts'
import type { GasBudget } from './user-gas-budget.ts'

export type ConfirmDeps = {
  portOf: (chainId: string) => EvmPort
  nonces: Pick<NonceSequences, 'take'>
  gasBudget: Pick<GasBudget, 'settle'>
  /**
   * Called when the node reports the nonce of a batch as used, by another transaction or by an earlier send of the
   * batch whose receipt is not visible yet.
   */
  onNonceUsed: (chainId: string) => void
  /** The monotonic time, for measuring waits; the `now` of a step is the time of the task. */
  nowMs?: () => number
}
type Result<Data, Names extends string> = StepResultOf<Partial<Data>, Names>
type Settling<Data extends BatchTaskData, Proof, Names extends string> = BatchOptions<Data, Proof> & {
  task: TaskView<Data>
  settle: (proof: Proof) => Promise<Settled<Data, Names>>
}

export async function confirmBatch<Data extends BatchTaskData, Proof, Names extends string>(
  { portOf, nonces, gasBudget, onNonceUsed, nowMs = monotonicMs }: ConfirmDeps,
  settling: Settling<Data, Proof, Names>,
  { now, signal, stopping, steps }: EffectContext<Names>,
): Promise<Result<Data, Names>> {
  const { task } = settling
  const effect = task.effects.findLast((each) => each.kind === effectKind)
  if (!effect) throw new Error(`task ${task.id} confirms a batch that was never stored`)
  const context: ConfirmContext<Names> = {
    task,
    effect,
    nonces,
    gasBudget,
    steps,
    now,
    nowMs,
    port: portOf(String(effect.intent.chainId)),
  }
  context.port.watcher.forget(task.id)
  try {
    const chainState = await awaitFinality(context, AbortSignal.any([signal, stopping]))
    if (chainState.nonceUsed) onNonceUsed(context.port.chain.row.id)
    if (chainState.mined && chainState.final)
      return await resolve(context, settling, chainState, chainState.mined)
    if (chainState.mined) return ofTask(waitingResult(context, chainState))
    return ofTask(
      (await expire(context, chainState)) ??
        (await reassignNonce(context, chainState)) ??
        (await cancelInvalid(context, chainState)) ??
        (await replaceStuck(context, chainState)) ??
        waitingResult(context, chainState),
    )
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    return ofTask(silentResult(context))
  }
}

/**
 * Casts a result to the type of the task's data: the compiler cannot see that a part of the unknown type `Data` has the
 * fields of a batch.
 */
const ofTask = <Data extends BatchTaskData, Names extends string>(result: BatchStepResult<Names>) =>
  result as Result<Data, Names>

/** Resolves a final receipt. Only the expected events prove the execution: a successful status does not. */
async function resolve<Data extends BatchTaskData, Proof, Names extends string>(
  context: ConfirmContext<Names>,
  { task, prove, settle, balanceChanges, tokens = [], onFinal }: Settling<Data, Proof, Names>,
  chainState: ChainState,
  receipt: Receipt,
): Promise<Result<Data, Names>> {
  const { effect, port } = context
  // The block of the receipt may have been reorganised away; then the receipt proves nothing.
  const { head } = chainState
  const block = head.number === receipt.block ? head : await port.chain.headAt(receipt.block)
  if (block.hash.toLowerCase() !== receipt.blockHash.toLowerCase())
    return ofTask(waitingResult(context, { ...chainState, mined: undefined, final: false }))
  onFinal?.(task)
  const account = String((effect.intent.batch as JsonObject).account)
  const proof = receipt.success ? await prove(task, receipt) : undefined
  if (proof === undefined) return ofTask(await notProven(context, chainState, receipt))
  const changed = balanceChanges?.(task, receipt) ?? balanceChangesOf(port.chain, receipt, account, tokens)
  const before = task.data.balance_changes ?? []
  const data: BatchTaskData = {
    transactions: transactionsOf(context, chainState, 'finalized'),
    balance_changes: before.length > 0 ? sumChanges([...before, ...changed]) : changed,
  }
  return addToResult(await settle(proof), {
    effects: [{ effectId: effect.id, status: 'confirmed', attemptExternalId: receipt.txHash }],
    data: data as Partial<Data>,
    // The budget row is locked first, as in the accepting transaction; another order could deadlock.
    writes: (tx) => context.gasBudget.settle(tx, task.id, receipt.feeWei),
  })
}

async function notProven<Names extends string>(
  context: ConfirmContext<Names>,
  chainState: ChainState,
  receipt: Receipt,
): Promise<BatchStepResult<Names>> {
  const { task, effect, port } = context
  const account = String((effect.intent.batch as JsonObject).account)
  // A node without an archive has the state of this block, but not of an older one.
  const finalBlock = finalBlockOf(port, chainState.head)
  const { times: executed } = await port.chain.executed(account, task.executionId, finalBlock)
  if (executed > sequenceOf(effect)) return unprovenResult(context, chainState)
  // A batch names its sender, so it cannot execute once every nonce of its attempts is used.
  const spent = await port.chain.transactionCount(newestOf(effect).nonceSequence.signer, finalBlock)
  if (effect.txAttempts.some(({ nonce }) => nonce >= spent)) return waitingResult(context, chainState)
  const end = droppedResult(context, chainState, {
    code: 'tx_failed',
    message: await failureOf(context, receipt),
    proof: { block: String(receipt.block), tx_hash: receipt.txHash, executions: 0 },
  })
  return { ...end, writes: (tx) => context.gasBudget.settle(tx, task.id, receipt.feeWei) }
}

async function failureOf(
  { effect, port: { chain, sponsor } }: ConfirmContext<string>,
  receipt: Receipt,
): Promise<string> {
  const minedHash = receipt.txHash.toLowerCase()
  const attempt = effect.txAttempts.find(({ externalId }) => externalId.toLowerCase() === minedHash)
  if (attempt && sponsor.isEmpty(attempt.raw))
    return 'The transaction could not be mined, and was replaced by an empty one'
  if (receipt.success) return 'The transaction was mined but did not execute the batch'
  const batch = effect.intent.batch as {
    account: string
    calls: { to: string; value: string; data: string }[]
  }
  const calls = batch.calls.map(({ to, value, data }) => ({ to, data, value: BigInt(value) }))
  // The reason only helps the reader, and the node refuses the simulation if the account's coins are gone.
  const simulation = await chain.simulate(batch.account, calls).catch((fault: unknown) => {
    if (fault instanceof Fault) return undefined
    throw fault
  })
  return !simulation || simulation.ok
    ? 'The transaction was mined and reverted'
    : `The transaction reverted: ${simulation.reason}`
}

/** Fails the task if the deadline passed at a final block in which the batch was not executed. */
async function expire<Names extends string>(
  context: ConfirmContext<Names>,
  { head }: ChainState,
): Promise<BatchStepResult<Names> | undefined> {
  const { task, effect, port } = context
  const { chain } = port
  const { account, deadlineSeconds } = effect.intent.batch as { account: string; deadlineSeconds: number }
  const finalBlock = finalBlockOf(port, head)
  if (head.timestampSeconds <= deadlineSeconds || finalBlock < 0n) return undefined
  const final = await chain.headAt(finalBlock)
  if (final.timestampSeconds <= deadlineSeconds) return undefined
  const { times: executed, timestampSeconds } = await chain.executed(account, task.executionId, finalBlock)
  // The comparison uses the timestamp of the state that was read, which may be older than the final block.
  if (timestampSeconds <= deadlineSeconds) return undefined
  const chainState = await readChainState(effect, chain)
  // The batch was executed but shows no receipt: the node lags, or prunes receipts.
  if (executed > sequenceOf(effect) || chainState.mined)
    return chainState.mined ? undefined : unprovenResult(context, chainState)
  return droppedResult(context, chainState, {
    code: 'expired',
    message: 'The transaction was not mined before its deadline',
    proof: {
      block: String(final.number),
      block_time: final.timestampSeconds,
      deadline: deadlineSeconds,
      executions: 0,
    },
  })
}

/** Parks the task; the watcher wakes it when a receipt appears, becomes final, or vanishes. */
function parkWatched<Names extends string>(
  { task, effect, port: { chain, watcher }, steps, now }: ConfirmContext<Names>,
  { mined, outcomeUnknown }: ChainState,
) {
  const stuckInMs = newestOf(effect).at.getTime() + chain.row.stuckAfterMs - now.getTime()
  // A transaction that may have to be sent again, or replaced, is due for this even if no receipt appears.
  const waitsForNews = !outcomeUnknown && (mined !== undefined || stuckInMs > 0)
  const { data, park } = pollAgain(task, steps.confirm, waitsForNews ? watchedBackoff : pollBackoff)
  const afterMs = waitsForNews && !mined ? Math.min(park.afterMs, stuckInMs) : park.afterMs
  const isWatched = watcher.wakeOnNews({
    taskId: task.id,
    subject: hashesOf(effect),
    afterMs,
    isNews(reading) {
      const seen = receiptStateOf(reading, chain.row)
      return seen.final || seen.mined?.blockHash !== mined?.blockHash
    },
  })
  return { data, park: { ...park, afterMs: isWatched ? afterMs : Math.min(afterMs, pollBackoff.firstMs) } }
}

function waitingResult<Names extends string>(
  context: ConfirmContext<Names>,
  chainState: ChainState,
): BatchStepResult<Names> {
  const { data, park } = parkWatched(context, chainState)
  const isSendUnknown = chainState.outcomeUnknown && !chainState.mined
  return {
    park,
    state: isSendUnknown ? 'reconciling' : chainState.mined ? 'confirming' : 'submitted',
    ...(isSendUnknown && { outcome: 'unknown' as const }),
    effects: updateOf(context, isSendUnknown ? 'unknown' : 'sent'),
    data: {
      ...data,
      transactions: transactionsOf(context, chainState, chainState.mined ? 'confirmed' : 'pending'),
    },
  }
}

function unprovenResult<Names extends string>(
  context: ConfirmContext<Names>,
  chainState: ReceiptState,
): BatchStepResult<Names> {
  const { data, ...polled } = reviewResult(context)
  return { ...polled, data: { ...data, transactions: transactionsOf(context, chainState, 'pending') } }
}

type DropReason = { code: string; message: string; proof: JsonObject }

function droppedResult(
  context: ConfirmContext<string>,
  chainState: ReceiptState,
  { code, message, proof }: DropReason,
): EndResult<BatchTaskData> {
  const { effect, port } = context
  return {
    ...notExecuted({ code, message, retryable: false, upstream: port.chain.row.displayName }),
    effects: [{ effectId: effect.id, status: 'dropped', proof }],
    data: { transactions: transactionsOf(context, chainState, 'dropped') },
  }
}
