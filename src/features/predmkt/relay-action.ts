import { later } from '#kernel/clock.ts'
import { conflict, Fault } from '#kernel/contract/fault.ts'
import { sha256 } from '#kernel/id.ts'
import type { RelayedAction, VenueWallet, WalletCall } from '#kernel/money/prediction-actions.ts'
import type { RelayReply, RelayState, VenueRelayer } from '#kernel/money/prediction-setup.ts'
import { combineWrites, type EffectDriver, notExecuted } from '#kernel/task/effect-steps.ts'
import { pollAgain, pollsOf } from '#kernel/task/poll-again.ts'
import type { Action, PredictionIntent } from '#kernel/task/signer.ts'
import { transactionView } from '#kernel/task/sponsored-effect.ts'
import type { Effect, JsonObject, StepResultOf, TaskProgress, TaskView } from '#kernel/task/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import type { PredmktDeps } from './deps.ts'
import { bodyOfEffect, latestEffect, signEffect } from './signed-effect.ts'
import { releaseWallet, setWaiting, takeWallet } from './store/account-store.ts'

/** Calls of the user's wallet at the venue, sent by its relayer without gas, as the driver of an effect. */

export type RelayTaskData = {
  wallet: VenueWallet
  polls?: number
  /** The relayer's id of the action in flight. */
  relay_id?: string | null
  /** Whether an action was signed again because its nonce was taken. */
  is_renewed?: boolean
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
}
export type RelayProof = { txHash: string | null; receipt: Receipt | null }
type RelayDeps = Pick<PredmktDeps, 'venue' | 'chain' | 'policy' | 'signer' | 'nonces' | 'log'>
type RelayOptions<Data> = {
  /**
   * Whether the chain shows what the action does; `receipt` is that of the transaction that the relayer names. A word
   * of the relayer proves nothing.
   */
  prove(task: TaskView<Data>, receipt: Receipt | null): boolean | Promise<boolean>
  /** Returns the end of the task where the relayer or the chain refused the action for good. */
  onRejected?(
    task: TaskView<Data>,
    refusal: { code: string; message: string },
  ): Promise<StepResultOf<Partial<Data>, string> | undefined>
}

const pollBackoff = { firstMs: 500, maxMs: 8_000 }
/** How long after the deadline of its signature an action that nobody knows is dropped. */
const dropAfterMs = 60_000
const reviewAfterPolls = 200

export function relayerOf({ venue }: Pick<PredmktDeps, 'venue'>): VenueRelayer {
  const relayer = venue.setup?.relayer
  if (relayer) return relayer
  throw new Fault(
    'unavailable',
    'The operator has no key for the relayer of the venue, so wallets cannot act there',
  )
}

export const relayDriver = <Data extends RelayTaskData, Names extends string>(
  deps: RelayDeps,
  options: RelayOptions<Data>,
): EffectDriver<Data, RelayPlan<Data>, RelayProof, Names> => ({
  async sign(task, plan, { now, steps }) {
    const { venue } = deps
    const relayer = relayerOf(deps)
    const wallet = plan.wallet ?? task.data.wallet
    const action = await actionOf(deps, wallet, plan)
    const owner = { userId: task.userId, venue: venue.name }
    return ofData<Data, Names>(
      await signEffect<RelayTaskData, Names>(
        deps,
        { id: task.id, userId: task.userId },
        {
          kind: 'prediction_relay',
          externalId: sha256(`${task.id}|${steps.sign}|${task.effects.length}`),
          account: wallet.owner,
          action,
          facts: plan.facts,
          bodyOf: (signature) =>
            action.type === 'create_wallet'
              ? relayer.createWalletBody(wallet.owner)
              : relayer.body(action as RelayedAction, signature),
          ...(action.type === 'wallet_batch' && {
            validUntil: later(new Date(0), action.deadlineSeconds * 1_000),
          }),
          writes: async (tx) => {
            if (!(await takeWallet(tx, owner, task.id)))
              throw conflict('Another action of the wallet is in flight', walletBusy)
          },
        },
        {
          now,
          next: steps.confirm,
          data: {
            ...(plan.data as Partial<RelayTaskData> | undefined),
            relay_id: null,
            polls: 0,
            note: null,
          },
          onRefused: (fault) =>
            fault.extras.reason === walletBusy
              ? { ...pollAgain(task, steps.sign, pollBackoff), state: 'waiting' }
              : notExecuted({ code: fault.code, message: fault.message, retryable: fault.retryable }),
        },
      ),
    )
  },

  async confirm(task, settle, { now, steps }) {
    const effect = latestEffect(task, 'prediction_relay')
    if (!effect) return ofData<Data, Names>({ next: steps.sign })
    const found = await outcomeOf(deps, task, { effect, now })
    const release = (tx: Parameters<typeof releaseWallet>[0]) =>
      releaseWallet(tx, { userId: task.userId, venue: deps.venue.name }, task.id)
    const wait = (afterMs?: number, data: Partial<RelayTaskData> = {}) => {
      const polled = pollAgain(task, steps.confirm, pollBackoff)
      const isLost = pollsOf(task) > reviewAfterPolls
      return ofData<Data, Names>({
        park: { ...polled.park, ...(afterMs !== undefined && { afterMs }) },
        ...(isLost ? { state: 'review', outcome: 'unknown' } : { state: 'confirming' }),
        data: { ...polled.data, ...data },
      })
    }
    switch (found.type) {
      case 'pending':
        return {
          ...wait(undefined, { ...(found.relayId !== undefined && { relay_id: found.relayId }) }),
          effects: [{ effectId: effect.id, status: 'sent' }],
        }
      case 'later': {
        const { until, message } = found
        const held = wait(Math.max(1_000, until.getTime() - now.getTime()), {
          note: message,
          polls: 0,
          progress: { step: 1, of: 1, text: `${message}; continues at ${until.toISOString()}` },
        })
        const owner = { userId: task.userId, venue: deps.venue.name }
        return { ...held, state: 'waiting', writes: (tx) => setWaiting(tx, owner, until) }
      }
      case 'busy':
        return { ...wait(), state: 'waiting' }
      case 'again':
        return ofData<Data, Names>({
          next: steps.sign,
          state: 'held',
          effects: [{ effectId: effect.id, status: 'dropped' }],
          data: { is_renewed: true, relay_id: null },
          writes: release,
        })
      case 'refused': {
        const own = await options.onRejected?.(task, found)
        const result = own ?? notExecuted({ ...found, retryable: false, upstream: deps.venue.name })
        return ofData<Data, Names>({
          ...(result as StepResultOf<RelayTaskData, Names>),
          effects: [{ effectId: effect.id, status: 'rejected' }],
          writes: combineWrites((result as { writes?: typeof release }).writes, release),
        })
      }
      case 'landed': {
        const { txHash, receipt, relayId } = found
        if (!(await options.prove(task, receipt))) return wait(undefined, { relay_id: relayId })
        const settled = await settle({ txHash, receipt })
        return {
          ...settled,
          effects: [...(settled.effects ?? []), { effectId: effect.id, status: 'confirmed' }],
          data: Object.assign({}, settled.data, {
            transactions: transactionsOf(deps, task, { txHash, receipt }),
          }),
          writes: combineWrites(settled.writes, release),
        } as typeof settled
      }
    }
  },
})

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
  return deps.venue.setup!.walletBatch(wallet, calls, await relayerOf(deps).nonce(wallet))
}

type Found =
  | { type: 'pending'; relayId?: string }
  | { type: 'later'; until: Date; message: string }
  | { type: 'busy' }
  | { type: 'again' }
  | { type: 'refused'; code: string; message: string }
  | { type: 'landed'; txHash: string | null; receipt: Receipt | null; relayId: string }

/** Looks an action up, or sends its stored bytes if nobody can know them yet. */
async function outcomeOf(
  deps: RelayDeps,
  task: TaskView<RelayTaskData>,
  { effect, now }: { effect: Effect; now: Date },
): Promise<Found> {
  const relayer = relayerOf(deps)
  const { relay_id: relayId, wallet } = task.data
  if (relayId != null) return stateFound(deps, await relayer.state(relayId), relayId)
  const known = effect.neverSent === true ? undefined : await foundAmong(relayer, wallet, effect)
  if (known) return stateFound(deps, known, known.relayId)
  const isVoid = effect.validUntil !== null && effect.validUntil <= now
  if (isVoid) {
    // A crash may have hidden a send, so the bytes are dropped only once they can no longer run.
    const isDead = effect.validUntil!.getTime() + dropAfterMs < now.getTime()
    return isDead ? { type: 'again' } : { type: 'pending' }
  }
  return replyFound(await relayer.submit(bodyOfEffect(effect)), now)
}

/** Finds the action among the latest ones of its owner: by its nonce, or as the one that creates the wallet. */
async function foundAmong(
  relayer: VenueRelayer,
  { owner }: VenueWallet,
  { intent }: Effect,
): Promise<RelayState | undefined> {
  const { action } = intent as { action?: { type?: string; nonce?: string } }
  const recent = await relayer.recent(owner)
  if (action?.type === 'create_wallet') return recent.find(({ nonce }) => nonce === null)
  const nonce = action?.nonce === undefined ? undefined : BigInt(action.nonce)
  return recent.find((each) => nonce !== undefined && each.nonce === nonce)
}

function replyFound(reply: RelayReply, now: Date): Found {
  switch (reply.type) {
    case 'accepted':
      return { type: 'pending', relayId: reply.relayId }
    case 'rejected':
      // Another action has used the nonce, so that these bytes can never run.
      if (reply.reason === 'nonce_stale' || reply.reason === 'expired') return { type: 'again' }
      return { type: 'refused', code: reply.reason, message: reply.message }
    case 'later': {
      if (reply.retryAfterMs === null) return { type: 'busy' }
      return { type: 'later', until: later(now, reply.retryAfterMs), message: reply.message }
    }
    case 'not_sent':
      return { type: 'busy' }
    case 'unknown':
      return { type: 'pending' }
  }
}

async function stateFound(
  { chain }: RelayDeps,
  state: RelayState | undefined,
  relayId: string,
): Promise<Found> {
  if (!state) return { type: 'pending', relayId }
  if (state.state === 'pending') return { type: 'pending', relayId }
  const receipt = state.txHash ? ((await chain.receipts([state.txHash])).receipts[0] ?? null) : null
  // A transaction that landed decides, whatever the relayer says of it.
  if (state.state === 'failed' && (receipt === null || !receipt.success))
    return {
      type: 'refused',
      code: 'relay_failed',
      message: state.error ?? 'The relayer could not run the action',
    }
  if (state.txHash && receipt === null) return { type: 'pending', relayId }
  return { type: 'landed', txHash: state.txHash, receipt, relayId }
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
