import type { NonceSequences } from '#durable/run/nonces.ts'
import { noteOrders, orderRows, venueName } from '#engines/venue/records/order-store.ts'
import { later } from '#kernel/clock.ts'
import type { Fault } from '#kernel/contract/fault.ts'
import { sha256 } from '#kernel/id.ts'
import { isAgentAction, type VenueAction } from '#kernel/money/venue-actions.ts'
import { pollAgain, pollsOf } from '#kernel/task/poll-again.ts'
import type {
  Action,
  Policy,
  PolicyReceipt,
  VenueIntent,
  VenueKeys,
  VenueSigner,
} from '#kernel/task/signer.ts'
import type { Intent, JsonObject, StepResultOf, TaskView, Tx } from '#kernel/task/task.ts'
import { canonicalJson } from '#kernel/wire/json.ts'
import { settleAll } from '#store/query.ts'
import {
  type ActionOutcome,
  type ActionTaskData,
  effectIdOf,
  effectKind,
  type UnknownOutcome,
} from './action-outcome.ts'
import { type ActionSource, type ConfirmRequest, confirmAction } from './confirm-action.ts'

/**
 * Runs one action at the venue as two task steps: sign and store, then send and confirm. Only the stored bytes
 * are sent again, and only after a look-up at the venue.
 */

export type ActionPlan = {
  /** The key of the action, unique within its task; the client order id is derived from execution and action key. */
  actionKey: string
  action: VenueAction
  account: string
  /** The trading key that signs actions which need no signature of the user. */
  agent: string
  facts: Pick<Action, 'operation' | 'tokens' | 'recipients' | 'usdMicros' | 'exit'>
  /** How far the venue's clock is ahead of ours: the venue checks nonces and expiries by its own clock. */
  skewMs: number
  ttlMs: number
  /** The bracket legs of the orders in the action, by client order id. */
  notes?: { cloid: string; leg: string; symbol: string }[]
  /** Called in the transaction that signs; a fault that it throws is a refusal. It is not called on acceptance. */
  beforeSigning?: (tx: Tx) => Promise<void>
}
export type SignContinuation<Data, Name extends string> = {
  now: Date
  next: Name
  data?: Partial<Data>
  /** Returns the result of the step if policy or custody refuses to sign. */
  onRefused: (fault: Fault) => StepResultOf<Partial<Data>, Name>
}
type Polled = { polls: number }
export type SignedResult<Data, Name extends string> = StepResultOf<
  Partial<Data> | Polled | (Polled & Partial<Data>),
  Name
>
export type PollResult<Name extends string> = StepResultOf<
  Polled & Pick<ActionTaskData, 'progress' | 'absence'>,
  Name
> & { park: { afterMs: number; next: Name } }

export type SignedActions = {
  sign<Data extends ActionTaskData, Name extends string>(
    task: TaskView<Data>,
    plan: ActionPlan,
    onward: SignContinuation<NoInfer<Data>, Name>,
  ): Promise<SignedResult<Data, Name>>
  confirm<T>(request: ConfirmRequest<T>): Promise<ActionOutcome<T>>
  /** Parks the task until the next look-up. */
  pollLater<Name extends string>(
    task: TaskView<ActionTaskData>,
    next: Name,
    unknownOutcome: UnknownOutcome,
  ): PollResult<Name>
  /** Parks the task and stores `data` while the venue's records of an executed action lag behind. */
  waitForRecords<Data extends ActionTaskData, Name extends string>(
    task: TaskView<Data>,
    next: Name,
    data: Partial<Data>,
  ): StepResultOf<Partial<Data>, Name> & { park: { afterMs: number; next: Name } }
}

type SignedActionDeps = {
  venue: ActionSource
  chainId: string
  policy: Pick<Policy, 'authorizeOnAccept' | 'authorize'>
  signer: VenueSigner
  nonces: Pick<NonceSequences, 'ensure'>
  /** How long a rejected user-signed action is looked up before it counts as not executed. */
  graceMs?: number
}

export const nonceKind = 'hyperliquid'
const openedSignersMax = 50_000
const defaultGraceMs = 120_000
const pollBackoff = { firstMs: 500, maxMs: 30_000 }
/** The polls, over about one hour, after which an operator reviews the task. */
const reviewAfterPolls = 120

const pollLater: SignedActions['pollLater'] = (task, next, { effects, cause, absence, nextMs }) => {
  const { park, data } = pollAgain(task, next, pollBackoff)
  const afterMs = nextMs?.(park.afterMs) ?? park.afterMs
  // A retry does not help with a reply of an unknown format.
  const needsReview = pollsOf(task) >= reviewAfterPolls || cause?.code === 'upstream_changed'
  const reason = needsReview && cause ? { progress: { step: 1, of: 1, text: cause.message } } : {}
  return {
    park: { afterMs, next },
    state: needsReview ? 'review' : 'reconciling',
    outcome: 'unknown',
    effects,
    data: { ...data, ...reason, ...(absence && { absence }) },
  }
}

export function createSignedActions(deps: SignedActionDeps): SignedActions {
  const { venue, chainId, policy, signer, nonces } = deps
  const opened = new Set<string>()

  const openNonceSequence = async (nonceSequence: Intent['nonceSequence'], start: bigint) => {
    if (opened.has(nonceSequence.signer)) return
    await nonces.ensure(nonceSequence, start)
    if (opened.size >= openedSignersMax) opened.clear()
    opened.add(nonceSequence.signer)
  }

  return {
    async sign<Data extends ActionTaskData, Name extends string>(
      task: TaskView<Data>,
      plan: ActionPlan,
      { now, next, data, onRefused }: SignContinuation<Data, Name>,
    ): Promise<SignedResult<Data, Name>> {
      const { actionKey, action, account, agent, facts, skewMs, ttlMs, notes = [], beforeSigning } = plan
      const byAgent = isAgentAction(action)
      const signerAddress = (byAgent ? agent : account).toLowerCase()
      const nonceSequence = { kind: nonceKind, chain: chainId, signer: signerAddress }
      const venueNowMs = now.getTime() + skewMs
      await openNonceSequence(nonceSequence, BigInt(venueNowMs))
      const openKeys = () => signer.venueKeys({ userId: task.userId, venue: venueName, byAgent })
      const intentOf = (nonce: bigint): VenueIntent => ({
        type: 'venue_action',
        venue: venueName,
        chainId,
        userId: task.userId,
        taskId: task.id,
        ...facts,
        account,
        signer: signerAddress,
        action,
        nonce,
        expiresAtMs: byAgent ? Math.max(venueNowMs, Number(nonce)) + ttlMs : null,
      })
      const notedOrders = {
        userId: task.userId,
        taskId: task.id,
        at: now,
        orders: action.type === 'order' ? action.orders : [],
      }
      const signed = async (intent: VenueIntent, receipt: PolicyReceipt, keys: VenueKeys) => {
        const { nonce, expiresAtMs } = intent
        const raw = await keys.sign(intent, receipt)
        return {
          effect: {
            kind: effectKind,
            externalId: effectIdOf(task, actionKey),
            policyReceipt: receipt.id,
            intent: JSON.parse(canonicalJson(intent)) as JsonObject,
            signed: { body: sha256(raw) },
            ...(expiresAtMs !== null && { validUntil: later(new Date(0), expiresAtMs) }),
          },
          txAttempt: { externalId: `${signerAddress}:${nonce}`, raw, nonce },
        }
      }
      const build: Intent['build'] = async (tx) => {
        await beforeSigning?.(tx)
        return async (nonce) => {
          const intent = intentOf(nonce)
          const keys = openKeys()
          const receipt = await policy.authorize(tx, intent)
          const [built] = await settleAll([signed(intent, receipt, keys), noteOrders(tx, notes, notedOrders)])
          return built
        }
      }
      const signOnAccept: Intent['signOnAccept'] = async () => {
        const keys = openKeys()
        const authorizeAction = await policy.authorizeOnAccept(task.userId, chainId)
        return async (nonce) => {
          const intent = intentOf(nonce)
          const { receipt, grant, check } = authorizeAction(intent)
          const rows = [{ table: 'venue_order', rows: orderRows(notes, notedOrders) }]
          return { ...(await signed(intent, receipt, keys)), grant, check, rows }
        }
      }
      const intent: Intent<Partial<Data>, Name> = {
        nonceSequence,
        minNonce: BigInt(venueNowMs),
        build,
        signOnAccept,
        onRefused,
      }
      return {
        sign: intent,
        next,
        state: 'signed',
        data: Object.assign({ polls: 0 }, data),
      }
    },

    confirm: (request) =>
      confirmAction(request, { venue, graceMs: deps.graceMs ?? request.graceMs ?? defaultGraceMs }),

    pollLater,
    waitForRecords(task, next, data) {
      const waiting = pollLater(task, next, { effects: [] })
      return { ...waiting, data: Object.assign({}, waiting.data, data) }
    },
  }
}
