import type { EventLog, StoredEvent } from '#durable/events/event-log.ts'
import type { Transact } from '#durable/transactions.ts'
import { later } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { Queryable } from '#store/query.ts'
import type { Claimed } from './claims.ts'
import { release, type Settlement, settle } from './cursor-store.ts'
import { eventMessage, type Message, resetMessage } from './message.ts'
import { type Attempt, type PostDeps, postMessage } from './post-message.ts'
import { retryDelayMs } from './retry-schedule.ts'
import type { WebhookSecrets } from './webhook-secrets.ts'

/** This module delivers the events of one webhook that this instance has claimed, one after the other. */

export type RunDeps = PostDeps & {
  db: Queryable
  transact: Transact
  events: Pick<EventLog, 'readAfter' | 'add' | 'notify'>
  secrets: Pick<WebhookSecrets, 'signing'>
  show: (event: StoredEvent) => unknown
  random: Random
  log: Log
  onAttempt: (attempt: Attempt) => void
  onDisabled: (reason: 'failing' | 'unsubscribed') => void
}
export type RunStop = {
  isStopping: () => boolean
  /** Aborts the requests under way when a stopping instance can wait no longer. */
  cutOff: AbortSignal
}
/** Whether more events wait after the run; `retryMs` is set after a failed attempt. */
export type RunEnd = { hasMore: boolean; retryMs?: number }

/**
 * A run ends after this many messages or this much time and releases its webhook, so that waiting webhooks get its
 * slot.
 */
const messagesMax = 20
const runMsMax = 20_000
/** An address that takes longer than this to answer makes its webhook a slow one. */
const slowMs = 2_000
/** The delay of a retry if a secret cannot be decrypted, which is no failure of the address. */
const unopenedMs = 60_000
/** A receiver answers with this status if it wants no more messages. */
const unsubscribedStatus = 410

type Run = {
  deps: RunDeps
  claim: Claimed
  secrets: readonly Buffer[]
  stop: RunStop
  seq: bigint
  attempts: number
}

export async function deliverClaimed(deps: RunDeps, claim: Claimed, stop: RunStop): Promise<RunEnd> {
  const { db, log, secrets, clock } = deps
  const run: Run = { deps, claim, secrets: [], stop, seq: claim.seq, attempts: claim.attempts }
  try {
    run.secrets = await secrets.signing(db, claim.webhook_id)
  } catch (error) {
    log.error({ error, webhook: claim.webhook_id }, 'a secret of a webhook cannot be decrypted')
    const retryAt = later(clock.now(), unopenedMs)
    await release(db, claim, { seq: run.seq, retryAt })
    return { hasMore: false }
  }
  const end = await deliverAll(run)
  return end ?? { hasMore: await release(db, claim, { seq: run.seq }) }
}

/** Delivers the waiting events; returns undefined if the caller still has to release the webhook. */
async function deliverAll(run: Run): Promise<RunEnd | undefined> {
  const { deps, claim, stop } = run
  const { user_id: userId, webhook_id: webhookId } = claim
  const untilMs = performance.now() + runMsMax
  const types = claim.types ?? undefined
  for (let count = 0; ; ) {
    const page = await deps.events.readAfter(userId, run.seq, { types, limit: messagesMax })
    if (run.seq + 1n < page.oldest) {
      const range = { from: run.seq + 1n, to: page.oldest - 1n }
      const end = await deliver(run, resetMessage(webhookId, range, deps.clock.now()), range.to)
      if (end) return end
      continue
    }
    for (const event of page.events) {
      if (stop.isStopping() || count === messagesMax || performance.now() > untilMs) return undefined
      count += 1
      const end = await deliver(run, eventMessage(webhookId, event, deps.show(event)), BigInt(event.id))
      if (end) return end
    }
    run.seq = page.upTo
    if (!page.isFull || stop.isStopping()) return undefined
  }
}

/**
 * Delivers one message; returns undefined if it was delivered and the run continues. The run ends when the kind of the
 * webhook changes, such as from quick to slow, because each kind has its own slots.
 */
async function deliver(run: Run, message: Message, seq: bigint): Promise<RunEnd | undefined> {
  const { deps, claim, secrets } = run
  const signal = run.stop.cutOff
  const at = deps.clock.now()
  const attempt = await postMessage(deps, { url: claim.url, secrets, message, signal })
  // If the shutdown cut the request off, its outcome is unknown, and the next owner sends the message again.
  if (attempt.status === null && signal.aborted) return { hasMore: await release(deps.db, claim, run) }
  deps.onAttempt(attempt)
  const attempts = run.attempts + 1
  const settlement = {
    seq,
    event_type: message.type,
    attempts,
    response_status: attempt.status,
    error: attempt.error,
    duration_ms: attempt.durationMs,
    first_attempt_at: at,
    last_attempt_at: at,
    isSlow: attempt.durationMs > slowMs,
  }
  if (attempt.error === null) {
    const delivered = { status: 'delivered', next_attempt_at: null, disabledReason: null } as const
    const { isStored, isSuspended } = await settle(deps.db, claim, { ...settlement, ...delivered })
    if (!isStored) return { hasMore: true }
    run.seq = seq
    run.attempts = 0
    if (isSuspended) {
      await release(deps.db, claim, { seq })
      return { hasMore: false }
    }
    const kind = settlement.isSlow ? 'slow' : 'quick'
    return kind === claim.kind ? undefined : { hasMore: await release(deps.db, claim, { seq }) }
  }
  const retryMs =
    attempt.status === unsubscribedStatus
      ? undefined
      : retryDelayMs(attempts, deps.random, attempt.retryAfterMs)
  if (retryMs === undefined) return disable(run, settlement, attempt)
  const next_attempt_at = later(deps.clock.now(), retryMs)
  const retrying = { status: 'retrying', next_attempt_at, disabledReason: null } as const
  await settle(deps.db, claim, { ...settlement, ...retrying })
  return { hasMore: false, retryMs }
}

/** Disables the webhook, and adds an event about it for the user's other webhooks, the stream and the list. */
async function disable(
  { deps, claim }: Run,
  settlement: Omit<Settlement, 'status' | 'next_attempt_at' | 'disabledReason'>,
  { status }: Attempt,
): Promise<RunEnd> {
  const reason = status === unsubscribedStatus ? 'unsubscribed' : 'failing'
  const { user_id: userId, webhook_id: webhookId } = claim
  const isDisabled = await deps.transact(async (tx) => {
    const failed = { status: 'failed', next_attempt_at: null, disabledReason: reason } as const
    const { isStored } = await settle(tx, claim, { ...settlement, ...failed })
    if (!isStored) return false
    const data = { webhook_id: webhookId, reason, response_status: status }
    const subject = { kind: 'webhook', id: webhookId }
    await deps.events.add(tx, userId, [{ type: 'webhook.disabled', subject, data }])
    return true
  })
  if (isDisabled) {
    deps.onDisabled(reason)
    deps.events.notify(userId)
  }
  return { hasMore: false }
}
