import { backoffMs } from '#kernel/async/backoff.ts'
import { later } from '#kernel/clock.ts'
import { conflict } from '#kernel/contract/fault.ts'
import { sha256 } from '#kernel/id.ts'
import type { RelayedAction, VenueWallet, WalletCall } from '#kernel/money/prediction-actions.ts'
import {
  addToResult,
  combineWrites,
  type EffectDriver,
  type EffectNames,
  notExecuted,
  type SignContext,
} from '#kernel/task/effect-steps.ts'
import { isLookingUp, nothingFound, outsideId, settleForgotten } from '#kernel/task/forgotten-execution.ts'
import { pollAgain, pollsOf } from '#kernel/task/poll-again.ts'
import type { Action, PredictionIntent } from '#kernel/task/signer.ts'
import { transactionView } from '#kernel/task/sponsored-effect.ts'
import type { Effect, JsonObject, StepResultOf, TaskProgress, TaskView, Tx } from '#kernel/task/task.ts'
import { isExposed } from '#kernel/task/task-state.ts'
import { recordFoundEffect } from '#store/record-found-effect.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import type { PredmktDeps } from './deps.ts'
import { assertRelays } from './relay-allowance.ts'
import { type Found, nonceOnChain, outcomeOf, relayerOf } from './relay-outcome.ts'
import { latestEffect, nonceKind, signEffect } from './signed-effect.ts'
import { releaseWallet, setWaiting, takeWallet } from './store/account-store.ts'

/** Calls of the user's wallet at the venue, sent by its relayer without gas, as the driver of an effect. */

export type RelayTaskData = {
  wallet: VenueWallet
  polls?: number
  /** Whether an action is signed that may have been sent; such a task is not cancellable. */
  is_signed?: boolean
  /** The relayer's id of the action in flight. */
  relay_id?: string | null
  /** How often an action was signed again that the relayer did not only put off. */
  renewals?: number
  transactions?: JsonObject[]
  progress?: TaskProgress | null
  note?: string | null
}
export type RelayPlan<Data = RelayTaskData> = {
  /** The wallet that makes the calls, if it is not that of the task. */
  wallet?: VenueWallet
  /** The calls of the wallet; null creates the wallet. */
  calls: WalletCall[] | null
  facts: Pick<Action, 'operation' | 'tokens' | 'recipients' | 'usdMicros' | 'exit'>
  /** The task data that is committed with the signature. */
  data?: Partial<Data>
  /** Runs in the transaction that signs; a fault that it throws is a refusal. */
  writes?(tx: Tx): Promise<void>
  /** Returns the result of the step if nothing is signed now. It is asked after the look-up of an earlier execution. */
  waits?(): Promise<StepResultOf<Partial<Data>, string> | undefined>
}
/** A batch that the chain shows, and that has no effect in this database. */
export type FoundRelay = { receipt: Receipt; nonce: bigint | null }
export type RelayProof = { txHash: string | null; receipt: Receipt | null }
type RelayDeps = Pick<
  PredmktDeps,
  'venue' | 'chain' | 'policy' | 'signer' | 'nonces' | 'log' | 'clock' | 'limits'
>
type RelayOptions<Data> = {
  /**
   * Whether the chain shows what the action does; `receipt` is that of the transaction that the relayer names. A word
   * of the relayer proves nothing.
   */
  prove(task: TaskView<Data>, receipt: Receipt | null): boolean | Promise<boolean>
  /**
   * Returns the transaction of an earlier task of the same execution, which this database has lost; `taken` while that of
   * another task, which has the wallet, may be taken for it.
   */
  findLost?(task: TaskView<Data>): Promise<FoundRelay | 'taken' | undefined>
  /** Searches the chain for the transaction of an action that has run, and that the relayer does not name. */
  findRun?(task: TaskView<Data>): Promise<Receipt | undefined>
  /** Returns the end of the task where the relayer or the chain refused the action for good. */
  onRejected?(
    task: TaskView<Data>,
    refusal: { code: string; message: string },
  ): Promise<StepResultOf<Partial<Data>, string> | undefined>
}

const pollBackoff = { firstMs: 500, maxMs: 8_000 }
const reviewAfterPolls = 200
const renewalsMax = 8
/** A relayer that names a later time is asked in between, because the time may be wrong. */
const waitMaxMs = 3_600_000

export const relayDriver = <Data extends RelayTaskData, Names extends string>(
  deps: RelayDeps,
  options: RelayOptions<Data>,
): EffectDriver<Data, RelayPlan<Data>, RelayProof, Names> => ({
  async sign(task, plan, context) {
    const isLost = outsideId(task) !== undefined && latestEffect(task, 'prediction_relay') === undefined
    const found = isLost ? await options.findLost?.(task) : undefined
    if (found === 'taken') return ofData<Data, Names>(lookUpLater(task, context.steps.sign))
    if (found) return adopt(deps, task, found, context)
    if (isLookingUp(task)) return nothingFound(context.steps.sign)
    const waiting = await plan.waits?.()
    if (waiting) return waiting as StepResultOf<Partial<Data>, Names>
    return ofData<Data, Names>(
      await signRelayed(deps, task, plan as RelayPlan as RelayPlan<RelayTaskData>, context),
    )
  },

  async confirm(task, settle, context) {
    const { now, steps } = context
    const effect = latestEffect(task, 'prediction_relay')
    if (!effect) return ofData<Data, Names>({ next: steps.sign })
    const known = await outcomeOf(deps, task, { effect, now })
    const run = isUnnamed(known) ? await ranSince(deps, effect, await options.findRun?.(task)) : undefined
    // The chain decides where the relayer has lost the action, or refuses it because it was done before.
    const isDone =
      run !== undefined ||
      (known.type !== 'landed' && effect.neverSent !== true && (await options.prove(task, null)))
    const found: Found = isDone
      ? { type: 'landed', txHash: run?.txHash ?? null, receipt: run ?? null, relayId: '' }
      : unlessOver(known, task, now)
    const owner = { userId: task.userId, venue: deps.venue.name }
    const release = (tx: Tx) => releaseWallet(tx, owner, task.id)
    if (found.type === 'rejected') {
      const { code, message } = found
      const own = await options.onRejected?.(task, { code, message })
      const refusal = notExecuted({ code, message, retryable: false, upstream: deps.venue.name })
      const result: StepResultOf<Partial<Data>, string> = own ?? refusal
      return {
        ...(result as StepResultOf<Partial<Data>, Names>),
        effects: [{ effectId: effect.id, status: 'rejected' }],
        writes: combineWrites(result.writes, release),
      } as StepResultOf<Partial<Data>, Names>
    }
    if (found.type !== 'landed')
      return ofData<Data, Names>(unsettled(deps, task, { found, effect, steps, now }))
    const { txHash, receipt, relayId } = found
    if (!(await options.prove(task, receipt)))
      return ofData<Data, Names>(pollRelay(task, steps.confirm, { relay_id: relayId }))
    const settled = await settle({ txHash, receipt })
    return {
      ...settled,
      effects: [...(settled.effects ?? []), { effectId: effect.id, status: 'confirmed' }],
      data: Object.assign({}, settled.data, {
        transactions: transactionsOf(deps, task, { txHash, receipt }),
      }),
      writes: combineWrites(settled.writes, release),
    } as typeof settled
  },
})

const isUnnamed = (found: Found): boolean =>
  (found.type === 'pending' && found.hasRun === true) || (found.type === 'landed' && found.receipt === null)

/** The clocks of gateway and chain may differ by this much. */
const skewMs = 120_000

/** The transaction, unless it is older than the signature; a wallet runs one action at a time. */
async function ranSince(
  { chain }: RelayDeps,
  { at }: Effect,
  receipt: Receipt | undefined,
): Promise<Receipt | undefined> {
  if (!receipt) return undefined
  const { timestampSeconds } = await chain.headAt(receipt.block)
  return timestampSeconds * 1_000 >= at.getTime() - skewMs ? receipt : undefined
}

/** Settles a task by the batch of an earlier task of its execution; nothing is signed or sent. */
async function adopt<Data extends RelayTaskData, Names extends string>(
  deps: RelayDeps,
  task: TaskView<Data>,
  { receipt, nonce }: FoundRelay,
  { now, steps, settle }: SignContext<Data, RelayProof, Names>,
): Promise<StepResultOf<Partial<Data>, Names>> {
  const { txHash } = receipt
  const { wallet } = task.data
  const { rejected: _rejected, ...settled } = await settleForgotten(
    { task, context: { settle } },
    { proof: { txHash, receipt } },
  )
  return addToResult(settled as StepResultOf<Partial<Data>, Names>, {
    data: { transactions: transactionsOf(deps, task, { txHash, receipt }) } as Partial<Data>,
    writes: (tx) =>
      recordFoundEffect(tx, {
        taskId: task.id,
        step: steps.sign,
        kind: 'prediction_relay',
        externalId: txHash,
        intent: { action: { wallet: wallet.wallet, nonce: nonce === null ? null : String(nonce) } },
        nonceSequence: { kind: nonceKind, chain: deps.venue.name, signer: wallet.owner.toLowerCase() },
        nonce: BigInt(now.getTime()),
        proof: { txHash },
        at: now,
      }),
  })
}

/** An action is not signed anew for ever. */
function unlessOver(found: Found, { data, deadline }: TaskView<RelayTaskData>, now: Date): Found {
  if (found.type !== 'again') return found
  if (now > deadline)
    return { type: 'rejected', code: 'expired', message: 'The relayer did not run the action in time' }
  if ((data.renewals ?? 0) < renewalsMax) return found
  const message = 'The relayer refuses every nonce of the wallet; nothing of it has run'
  return { type: 'rejected', code: 'relay_failed', message }
}

type RelayedTask = TaskView<RelayTaskData>
type RelayResult<Names extends string> = StepResultOf<Partial<RelayTaskData>, Names>

async function signRelayed<Names extends string>(
  deps: RelayDeps,
  task: Pick<RelayedTask, 'id' | 'userId' | 'executionId' | 'data' | 'effects'>,
  plan: RelayPlan<RelayTaskData>,
  { now, steps }: { now: Date; steps: EffectNames<Names> },
): Promise<RelayResult<Names>> {
  const relayer = relayerOf(deps)
  const wallet = plan.wallet ?? task.data.wallet
  const action = await actionOf(deps, wallet, plan)
  const owner = { userId: task.userId, venue: deps.venue.name }
  return signEffect<RelayTaskData, Names>(
    deps,
    task,
    {
      kind: 'prediction_relay',
      externalId: sha256(`${task.id}|${steps.sign}|${task.effects.length}`),
      account: wallet.owner,
      action,
      facts: plan.facts,
      bodyOf: (signature) =>
        action.type === 'create_wallet'
          ? relayer.createWalletBody(wallet.owner)
          : relayer.body(action as RelayedAction, signature, task.executionId),
      ...(action.type === 'wallet_batch' && {
        validUntil: later(new Date(0), action.deadlineSeconds * 1_000),
      }),
      writes: async (tx) => {
        if (!(await takeWallet(tx, owner, task.id)))
          throw conflict('Another action of the wallet is in flight', walletBusy)
        await plan.writes?.(tx)
        const isFirst = !task.effects.some(({ kind }) => kind === 'prediction_relay')
        if (isFirst)
          await assertRelays({ ...deps, db: tx }, task.userId, { isExit: plan.facts.exit, isSigning: true })
      },
    },
    {
      now,
      next: steps.confirm,
      data: { ...plan.data, relay_id: null, polls: 0, note: null },
      onRefused: (fault) =>
        fault.extras.reason === walletBusy
          ? waitForWallet(task, steps.sign)
          : notExecuted({ code: fault.code, message: fault.message, retryable: fault.retryable }),
    },
  )
}

const waitForWallet = <Names extends string>(task: Pick<RelayedTask, 'data'>, next: Names) =>
  ({ ...pollAgain(task, next, pollBackoff), state: 'waiting' }) as const

/** Nothing else ends the task before its look-up. */
const lookUpLater = <Names extends string>(task: Pick<RelayedTask, 'data'>, next: Names) =>
  ({ ...waitForWallet(task, next), state: 'reconciling', outcome: 'unknown' }) as const

function pollRelay<Name extends string>(task: RelayedTask, next: Name, data: Partial<RelayTaskData> = {}) {
  const polled = pollAgain(task, next, pollBackoff)
  const isLost = pollsOf(task) > reviewAfterPolls
  return {
    park: polled.park,
    ...(isLost ? ({ state: 'review', outcome: 'unknown' } as const) : ({ state: 'confirming' } as const)),
    data: { ...polled.data, ...data },
  }
}

type Unsettled<Names extends string> = {
  found: Exclude<Found, { type: 'landed' | 'rejected' }>
  effect: Effect
  steps: EffectNames<Names>
  now: Date
}

function unsettled<Names extends string>(
  { venue }: RelayDeps,
  task: RelayedTask,
  { found, effect, steps, now }: Unsettled<Names>,
): RelayResult<Names> {
  const owner = { userId: task.userId, venue: venue.name }
  switch (found.type) {
    case 'pending':
      return {
        ...pollRelay(task, steps.confirm, found.relayId === undefined ? {} : { relay_id: found.relayId }),
        effects: [{ effectId: effect.id, status: 'sent' }],
      }
    case 'later': {
      const { until, message } = found
      const text = `${message}; continues at ${until.toISOString()}`
      return {
        park: {
          afterMs: Math.min(waitMaxMs, Math.max(1_000, until.getTime() - now.getTime())),
          next: steps.confirm,
        },
        state: 'waiting',
        data: { note: message, polls: 0, renewals: 0, progress: { step: 1, of: 1, text } },
        writes: (tx) => setWaiting(tx, owner, until),
      }
    }
    case 'rateLimited':
      return { ...pollRelay(task, steps.confirm, { renewals: 0 }), state: 'waiting' }
    case 'again': {
      const renewals = (task.data.renewals ?? 0) + 1
      const isSigned = task.effects.some((each) => each.id !== effect.id && isExposed(each))
      return {
        park: { afterMs: backoffMs(pollBackoff, renewals), next: steps.sign },
        state: 'held',
        effects: [{ effectId: effect.id, status: 'dropped' }],
        data: { renewals, relay_id: null, is_signed: isSigned },
        writes: (tx) => releaseWallet(tx, owner, task.id),
      }
    }
  }
}

const walletBusy = 'wallet_busy'

/** Types a result that has a part of the task data; `Data` extends that part, which the compiler cannot conclude. */
const ofData = <Data, Names extends string>(result: StepResultOf<Partial<RelayTaskData>, Names>) =>
  result as StepResultOf<Partial<Data>, Names>

async function actionOf(
  deps: RelayDeps,
  wallet: VenueWallet,
  { calls }: Pick<RelayPlan, 'calls'>,
): Promise<PredictionIntent['action']> {
  if (calls === null) return { type: 'create_wallet', owner: wallet.owner }
  const [named, shown] = await Promise.all([relayerOf(deps).nonce(wallet), nonceOnChain(deps, wallet.wallet)])
  // The relayer knows of actions that have not run yet, and the chain of those that the relayer has not noticed.
  const nonce = shown !== null && shown > named ? shown : named
  return deps.venue.setup!.walletBatch(wallet, calls, nonce)
}

function transactionsOf(
  { chain }: RelayDeps,
  { data }: TaskView<RelayTaskData>,
  { txHash, receipt }: RelayProof,
): JsonObject[] {
  const earlier = data.transactions ?? []
  if (txHash === null) return earlier
  const view = transactionView(chain.row, { txHash, status: 'confirmed', block: receipt?.block })
  return [...earlier, view]
}
