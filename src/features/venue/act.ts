import { setTimeout as pause } from 'node:timers/promises'
import type { Lanes } from '#durable/lanes.ts'
import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import { sha256 } from '#kernel/id.ts'
import { canonicalJson } from '#kernel/json.ts'
import type { Action, Policy, PolicyReceipt } from '#kernel/signer.ts'
import type { Effect, EffectUpdate, Intent, JsonObject, StepResult, TaskView, Tx } from '#kernel/task.ts'
import {
  isAgentAction,
  type VenueAction,
  type VenueIntent,
  type VenueKeys,
  type VenueSigner,
} from '#kernel/venue.ts'
import { allEnded } from '#store/query.ts'
import type { Hyperliquid, LegStatus, Sent } from '#upstreams/hyperliquid/hyperliquid.ts'
import { noteOrders, venueName } from './store.ts'

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

export type Verdict<T> =
  | { is: 'done'; value: T; effects: EffectUpdate[] }
  /** Nothing of it was done, by the venue's own word. */
  | { is: 'refused'; message: string; effects: EffectUpdate[] }
  /** It never came to the venue, and never can. */
  | { is: 'dead'; message: string; effects: EffectUpdate[] }
  | { is: 'doubt'; effects: EffectUpdate[] }

export type Question<T> = {
  task: TaskView
  leg: string
  signal: AbortSignal
  /** Asks the venue for the deed itself; undefined where it knows nothing of it. */
  look: () => Promise<T | undefined>
  /** What the reply to the action says; undefined leaves it to `look`. */
  read: (legs: LegStatus[]) => T | undefined
}

export type VenueActs = {
  intend(task: TaskView, plan: ActPlan, onward: Onward): Promise<StepResult>
  settle<T>(question: Question<T>): Promise<Verdict<T>>
  /** Looks again later; nothing is known until then. */
  wait(task: TaskView, next: string, effects: EffectUpdate[]): StepResult
}

type Needs = {
  venue: Pick<Hyperliquid, 'send' | 'account'>
  chainId: string
  policy: Pick<Policy, 'opening' | 'authorize'>
  signer: VenueSigner
  lanes: Pick<Lanes, 'open'>
  /** How long a user-signed action without a trace is looked for before it counts as refused. */
  graceMs?: number
}

export const effectKind = 'hyperliquid_action'
const laneKind = 'hyperliquid'
const lanesRememberedMost = 50_000
const inlineMs = 2_000
const pollFirstMs = 25
const pollMostMs = 400
const sendingsMost = 3
/** The venue may see an action a moment after its own clock passed the end. */
const expiryMarginMs = 1_000
const graceMsDefault = 120_000
const parkFirstMs = 500
const parkMostMs = 30_000
/** About an hour of looking in vain. */
const reviewAfterPolls = 120

/** 16 bytes that belong to this leg of this task and to nothing else. */
export const cloidOf = (taskId: string, leg: string): string => `0x${sha256(`${taskId}:${leg}`).slice(0, 32)}`

export function effectOf(task: TaskView, leg: string): Effect {
  const extId = cloidOf(task.id, leg)
  const effect = task.effects.find((each) => each.kind === effectKind && each.extId === extId)
  if (!effect) throw new Error(`task ${task.id} settles ${leg}, which was never stored`)
  return effect
}

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
        ...{ type: 'venue_action', venue: venueName, chainId, userId: task.userId, taskId: task.id },
        ...{ ...facts, account, signer: by, action, nonce },
        expiresAtMs: byAgent ? Math.max(venueNowMs, Number(nonce)) + ttlMs : null,
      })
      const noted = (tx: Tx) =>
        noteOrders(
          tx,
          notes.map((note) => ({ ...note, userId: task.userId, taskId: task.id, at: now })),
        )
      const signed = async (intent: VenueIntent, receipt: PolicyReceipt, keys: VenueKeys) => {
        const { nonce, expiresAtMs } = intent
        const raw = await keys.sign(intent, receipt)
        return {
          effect: {
            ...{ kind: effectKind, extId: cloidOf(task.id, leg), policyReceipt: receipt.id },
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

    settle: (question) => settle(question, { venue, graceMs: needs.graceMs ?? graceMsDefault }),

    wait(task, next, effects) {
      const polls = Number(task.data.polls ?? 0)
      const afterMs = Math.min(parkFirstMs * 2 ** Math.min(polls, 10), parkMostMs)
      return {
        park: { afterMs, next },
        state: polls < reviewAfterPolls ? 'reconciling' : 'review',
        ...{ outcome: 'unknown', effects, data: { polls: polls + 1 } },
      }
    },
  }
}

type Setting = { venue: Needs['venue']; graceMs: number }

/** The first reply to fresh bytes is the venue's own word on them; after any doubt only the look-up counts. */
async function settle<T>(question: Question<T>, { venue, graceMs }: Setting): Promise<Verdict<T>> {
  const { task, leg, signal, look, read } = question
  const effect = effectOf(task, leg)
  const carrier = effect.carriers.at(-1)
  if (!carrier) throw new Error(`effect ${effect.id} has nothing to carry it`)
  const done = (value: T): Verdict<T> => ({
    ...{ is: 'done', value },
    effects: [{ effectId: effect.id, status: 'confirmed', carrierExtId: carrier.extId }],
  })
  if (effect.fresh) {
    const sent = await venue.send(carrier.raw)
    const value = sent.is === 'ok' ? read(sent.legs) : undefined
    if (value !== undefined) return done(value)
    if (sent.is === 'refused' && !isSpent(sent))
      return { is: 'refused', message: sent.message, effects: [{ effectId: effect.id, status: 'rejected' }] }
  }
  let refusal: string | undefined
  const startedMs = performance.now()
  for (let waitMs = pollFirstMs, sendings = 0; ; waitMs = Math.min(waitMs * 2, pollMostMs)) {
    const sight = await sightOf(effect, venue, look)
    if (sight?.found !== undefined) return done(sight.found)
    const dead = sight && deathOf<T>(effect, sight.atMs, { refusal, graceMs })
    if (dead) return dead
    if (sight && !sight.expired && sendings < sendingsMost) {
      sendings += 1
      const sent = await venue.send(carrier.raw)
      const value = sent.is === 'ok' ? read(sent.legs) : undefined
      if (value !== undefined) return done(value)
      if (sent.is === 'refused') refusal = sent.message
    }
    if (signal.aborted || performance.now() - startedMs > inlineMs)
      return { is: 'doubt', effects: [{ effectId: effect.id, status: 'unknown' }] }
    await pause(waitMs, undefined, { signal }).catch(() => undefined)
  }
}

const isSpent = (sent: Extract<Sent, { is: 'refused' }>): boolean => /\bnonce\b/i.test(sent.message)

type Sight<T> = { atMs: number; found: T | undefined; expired: boolean }

/** The clock is read before the look: what is absent after its end can then no longer come. */
async function sightOf<T>(
  { intent }: Effect,
  venue: Needs['venue'],
  look: Question<T>['look'],
): Promise<Sight<T> | undefined> {
  try {
    const { timeMs } = await venue.account(String(intent.account))
    const found = await look()
    const ends = intent.expiresAtMs
    return { atMs: timeMs, found, expired: typeof ends === 'number' && timeMs > ends }
  } catch (fault) {
    if (fault instanceof Fault) return undefined
    throw fault
  }
}

type Circumstances = { refusal: string | undefined; graceMs: number }

function deathOf<T>(
  effect: Effect,
  atMs: number,
  { refusal, graceMs }: Circumstances,
): Verdict<T> | undefined {
  const ends = effect.intent.expiresAtMs
  const dropped = (proof: JsonObject): EffectUpdate[] => [{ effectId: effect.id, status: 'dropped', proof }]
  if (typeof ends === 'number') {
    if (atMs <= ends + expiryMarginMs) return undefined
    const message = refusal ?? 'The venue did not take the action before it expired'
    return { is: 'dead', message, effects: dropped({ venue_time: atMs, expired_at: ends, found: false }) }
  }
  if (refusal === undefined || atMs - Number(effect.intent.nonce) < graceMs) return undefined
  return {
    ...{ is: 'dead', message: refusal },
    effects: dropped({ venue_time: atMs, refusal, found: false }),
  }
}
