import type { Lanes } from '#durable/lanes.ts'
import { later } from '#kernel/clock.ts'
import type { Fault } from '#kernel/fault.ts'
import { sha256 } from '#kernel/id.ts'
import { canonicalJson } from '#kernel/json.ts'
import type { Action, Policy, PolicyReceipt } from '#kernel/signer.ts'
import type { EffectUpdate, Intent, JsonObject, StepResult, TaskView, Tx } from '#kernel/task.ts'
import {
  isAgentAction,
  type VenueAction,
  type VenueIntent,
  type VenueKeys,
  type VenueSigner,
} from '#kernel/venue.ts'
import { allEnded } from '#store/query.ts'
import type { LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'
import {
  cloidOf,
  effectIdOf,
  effectKind,
  effectOf,
  type Retry,
  retryThrottled,
  type Unknown,
  type Verdict,
} from './act-effect.ts'
import { type ActionSource, confirmAction, readLagMs } from './confirm-action.ts'
import { noteOrders, venueName } from './store.ts'

export type { Verdict }
export { cloidOf, effectOf, readLagMs }

/**
 * One thing said to the venue, as two steps of a task: signed and stored, then sent and settled. What was stored is
 * sent again only as the same bytes, and only after the venue was asked what it knows of them.
 */

export type ActPlan = {
  /** Names the act within its task; its id at the venue is derived from both. */
  leg: string
  action: VenueAction
  account: string
  /** Whose key signs what an agent may sign. */
  agent: string
  facts: Pick<Action, 'operation' | 'tokens' | 'recipients' | 'usdMicros' | 'exit'>
  /** How far the venue's clock is ahead of ours: the venue judges numbers and ends by its own. */
  aheadMs: number
  ttlMs: number
  /** Which leg of the bracket each order is. */
  notes?: { cloid: string; leg: string; symbol: string }[]
}
export type Onward = {
  now: Date
  next: string
  data?: JsonObject
  effects?: EffectUpdate[]
  /** What the step becomes where policy or custody refuse. */
  refused: (fault: Fault) => StepResult
}

/** How far a look-up goes: every question costs of the venue's budget. */
export type LookUp = {
  /** Every record that could show the deed is asked, and not its status alone. */
  allRecords: boolean
  /**
   * The action can no longer land, so that what is absent now stays absent. A look-up throws a fault as long as two
   * records contradict each other.
   */
  isLast: boolean
}

export type Question<T> = {
  task: TaskView
  leg: string
  signal: AbortSignal
  /** Asks the venue for the deed itself; undefined where it knows nothing of it. */
  look: (how: LookUp) => Promise<T | undefined>
  /** How long a user-signed action without a trace is looked for, where it is not the usual time. */
  graceMs?: number
  /** What the reply to the action says; undefined leaves it to `look`. */
  read: (legs: LegStatus[]) => T | undefined
}

export type VenueActs = {
  intend(task: TaskView, plan: ActPlan, onward: Onward): Promise<StepResult>
  settle<T>(question: Question<T>): Promise<Verdict<T>>
  /** Parks the task until the next look-up. */
  wait(task: TaskView, next: string, doubt: Unknown): StepResult
  /**
   * The step that signs an exit again after the venue refused it for too many requests of the account; undefined for
   * any other verdict, and where the deadline of the task would pass first.
   */
  retryThrottled<T>(task: TaskView, verdict: Verdict<T>, retry: Retry): StepResult | undefined
}

type Needs = {
  venue: ActionSource
  chainId: string
  policy: Pick<Policy, 'opening' | 'authorize'>
  signer: VenueSigner
  lanes: Pick<Lanes, 'open'>
  /** How long a user-signed action without a trace is looked for before it counts as refused. */
  graceMs?: number
}

const laneKind = 'hyperliquid'
const lanesRememberedMost = 50_000
const graceMsDefault = 120_000
const parkFirstMs = 500
const parkMostMs = 30_000
/** About an hour of looking in vain. */
const reviewAfterPolls = 120

export function venueActs(needs: Needs): VenueActs {
  const { venue, chainId, policy, signer, lanes } = needs
  const opened = new Set<string>()

  const openLane = async (lane: Intent['lane'], start: bigint) => {
    if (opened.has(lane.signer)) return
    await lanes.open(lane, start)
    if (opened.size >= lanesRememberedMost) opened.clear()
    opened.add(lane.signer)
  }

  return {
    async intend(task, plan, { now, next, data, effects, refused }) {
      const { leg, action, account, agent, facts, aheadMs, ttlMs, notes = [] } = plan
      const byAgent = isAgentAction(action)
      const by = (byAgent ? agent : account).toLowerCase()
      const lane = { kind: laneKind, chain: chainId, signer: by }
      const venueNowMs = now.getTime() + aheadMs
      await openLane(lane, BigInt(venueNowMs))
      const sealed = () => signer.venueKeys({ userId: task.userId, venue: venueName, byAgent })
      const intentOf = (nonce: bigint): VenueIntent => ({
        type: 'venue_action',
        venue: venueName,
        chainId,
        userId: task.userId,
        taskId: task.id,
        ...facts,
        account,
        signer: by,
        action,
        nonce,
        expiresAtMs: byAgent ? Math.max(venueNowMs, Number(nonce)) + ttlMs : null,
      })
      const noted = (tx: Tx) =>
        noteOrders(tx, notes, {
          userId: task.userId,
          taskId: task.id,
          at: now,
          orders: action.type === 'order' ? action.orders : [],
        })
      const signed = async (intent: VenueIntent, receipt: PolicyReceipt, keys: VenueKeys) => {
        const { nonce, expiresAtMs } = intent
        const raw = await keys.sign(intent, receipt)
        return {
          effect: {
            kind: effectKind,
            extId: effectIdOf(task, leg),
            policyReceipt: receipt.id,
            intent: JSON.parse(canonicalJson(intent)) as JsonObject,
            signed: { body: sha256(raw) },
            ...(expiresAtMs !== null && { validUntil: later(new Date(0), expiresAtMs) }),
          },
          carrier: { extId: `${by}:${nonce}`, raw, nonce },
        }
      }
      const build: Intent['build'] = async (nonce, tx) => {
        const intent = intentOf(nonce)
        const keys = sealed()
        const receipt = await policy.authorize(tx, intent)
        const [built] = await allEnded([signed(intent, receipt, keys), noted(tx)])
        return built
      }
      const opening: Intent['opening'] = async (tx) => {
        const keys = sealed()
        const judge = await policy.opening(tx, task.userId, chainId)
        return async (nonce) => {
          const intent = intentOf(nonce)
          const { receipt, write } = judge(intent)
          const also = async () => void (await allEnded([write(), noted(tx)]))
          return { ...(await signed(intent, receipt, keys)), also }
        }
      }
      const intend: Intent = { lane, floor: BigInt(venueNowMs), build, opening, refused }
      return { intend, next, state: 'signed', data: { polls: 0, ...data }, ...(effects && { effects }) }
    },

    settle: (question) =>
      confirmAction(question, { venue, graceMs: needs.graceMs ?? question.graceMs ?? graceMsDefault }),

    wait(task, next, { effects, cause, nextMs }) {
      const polls = Number(task.data.polls ?? 0)
      const backoffMs = Math.min(parkFirstMs * 2 ** Math.min(polls, 10), parkMostMs)
      const afterMs = nextMs?.(backoffMs) ?? backoffMs
      // An answer that is not understood does not become clearer by itself.
      const needsReview = polls >= reviewAfterPolls || cause?.code === 'upstream_changed'
      const reason = needsReview && cause ? { progress: { step: 1, of: 1, text: cause.message } } : {}
      return {
        park: { afterMs, next },
        state: needsReview ? 'review' : 'reconciling',
        outcome: 'unknown',
        effects,
        data: { polls: polls + 1, ...reason },
      }
    },

    retryThrottled,
  }
}
