import { webhooksContract } from '#features/notifications/contract.ts'
import type { EventType } from '#features/notifications/event-types.ts'
import { type ReplayInput, type UpdateInput, webhooksMax } from '#features/notifications/webhooks-contract.ts'
import { createFairQueue } from '#kernel/async/fair-queue.ts'
import { type ActScope, appOf, type Caller, toActScope } from '#kernel/contract/caller.ts'
import { invalid } from '#kernel/contract/fault.ts'
import { implement, type Operation, preparedAct } from '#kernel/contract/operation.ts'
import { uuidv7 } from '#kernel/id.ts'
import { create, rotate } from './create-and-rotate.ts'
import type { WebhooksDeps } from './deps.ts'
import { messageId, testMessage } from './message.ts'
import { postMessage } from './post-message.ts'
import { find, isVisible, lock } from './webhook-access.ts'
import { addEvent, type ChangedField, deletedEvent, updatedEvent } from './webhook-events.ts'
import * as store from './webhook-store.ts'
import { assertUnused, parseWebhookUrl } from './webhook-url.ts'
import { view } from './webhook-view.ts'

type WebhookInput = { webhook_id: string }

const tests = { runsMax: 8, waitingMax: 32, waitingOfKeyMax: 2 }

/** If an app changes the address, it gets the events from then on, so the webhook then belongs to that app. */
async function update(deps: WebhooksDeps, input: UpdateInput, caller: Caller, act: ActScope) {
  const { tx } = act
  const { webhook_id: id, enabled } = input
  await lock(tx, caller, deps.holdAccess)
  const row = await find(tx, caller, id)
  const { types = row.types as EventType[] | null, description = row.description } = input
  const url = input.url === undefined ? row.url : parseWebhookUrl(input.url, deps)
  const isMoved = url !== row.url
  const hasOtherTypes = !isSameList(types, row.types)
  const fields: [ChangedField, boolean][] = [
    ['url', isMoved],
    ['types', hasOtherTypes],
    ['description', description !== row.description],
    ['enabled', enabled !== undefined && enabled !== (row.status === 'enabled')],
  ]
  const names = fields.flatMap(([name, isChanged]) => (isChanged ? [name] : []))
  if (names.length === 0) return view(row)
  if (isMoved) assertUnused(await store.webhooksOf(tx, caller.userId), caller, { url, id })
  if (isMoved) await store.restartDelivery(tx, id)
  else if (hasOtherTypes) await store.restartMessage(tx, id)
  else await store.fenceDelivery(tx, id)
  if (enabled === true && row.status === 'disabled') await store.enableWebhook(tx, id)
  if (enabled === false && row.status === 'enabled') await store.stopWebhook(tx, id, deps.clock.now())
  const changed = { ...row, url, types, description, client_id: isMoved ? appOf(caller) : row.client_id }
  await store.updateWebhook(tx, changed)
  await addEvent(deps, caller, act, updatedEvent(changed, names))
  return view(await find(tx, caller, id))
}

const isSameList = (one: readonly string[] | null, other: readonly string[] | null): boolean =>
  JSON.stringify(one?.toSorted()) === JSON.stringify(other?.toSorted())

type Replayed = { from: bigint; events: number }

async function readReplay(
  { db, events }: WebhooksDeps,
  input: ReplayInput,
  caller: Caller,
): Promise<Replayed> {
  await find(db, caller, input.webhook_id)
  const { first, last } = await events.bounds(caller.userId)
  const from = input.after === '0' ? first - 1n : BigInt(input.after)
  if (from >= first - 1n && from <= last) return { from, events: Number(last - from) }
  throw invalid(
    'after',
    'not_stored',
    `Input should be the id of a stored event, from ${first - 1n} to ${last}; 0 replays all that are stored`,
    { ge: String(first - 1n), le: String(last) },
  )
}

const replay = (deps: WebhooksDeps) =>
  preparedAct(
    async (input: ReplayInput, caller) => ({
      webhookId: input.webhook_id,
      ...(await readReplay(deps, input, caller)),
    }),
    async ({ webhookId, from, events }, caller, request) => {
      const { tx, afterCommit } = toActScope(request)
      await lock(tx, caller, deps.holdAccess)
      await find(tx, caller, webhookId)
      await store.moveCursor(tx, webhookId, from)
      afterCommit(() => deps.publishChange(caller.userId))
      return { webhook_id: webhookId, after: String(from), events }
    },
  )

/** The test is sent before the transaction begins, which then only stores the answer. */
function sendTest(deps: WebhooksDeps) {
  const { db, clock, random, secrets } = deps
  const queue = createFairQueue(tests)
  const send = async (id: string, caller: Caller) => {
    const { url } = await find(db, caller, id)
    const now = clock.now()
    const message = testMessage(id, uuidv7(now, random), now)
    const attempt = await postMessage(deps, { url, secrets: await secrets.signing(db, id), message })
    return {
      message_id: message.id,
      status: attempt.error === null ? ('delivered' as const) : ('failed' as const),
      response_status: attempt.status,
      error: attempt.error,
      duration_ms: attempt.durationMs,
    }
  }
  return preparedAct(
    ({ webhook_id: id }: WebhookInput, caller) => queue.run(caller.userId, () => send(id, caller)),
    async (sent) => sent,
  )
}

async function remove(deps: WebhooksDeps, id: string, caller: Caller, act: ActScope) {
  await lock(act.tx, caller, deps.holdAccess)
  const row = await find(act.tx, caller, id)
  await store.deleteWebhooks(act.tx, [id])
  await addEvent(deps, caller, act, deletedEvent(row, 'deleted'))
  return { webhook_id: id, deleted: true }
}

export function createWebhooks(deps: WebhooksDeps): Operation[] {
  const { db } = deps
  return implement(webhooksContract, {
    async list(_input, caller) {
      const all = await store.webhooksOf(db, caller.userId)
      return { webhooks: all.filter((each) => isVisible(each, caller)).map(view), max: webhooksMax }
    },
    create: create(deps),
    // A repeat reads the webhook again, because another app may have changed the address since.
    update: async (input, caller, request) =>
      request.isReplay
        ? view(await find(db, caller, input.webhook_id))
        : update(deps, input, caller, toActScope(request)),
    delete: ({ webhook_id: id }, caller, request) => remove(deps, id, caller, toActScope(request)),
    rotate: rotate(deps),
    test: sendTest(deps),
    async deliveries({ webhook_id: id, skip = 0, limit = 50 }, caller) {
      await find(db, caller, id)
      const { rows, total } = await store.deliveriesOf(db, id, { skip, limit })
      const deliveries = rows.map((row) => ({
        message_id: messageId(id, row.seq, row.event_type),
        event_id: String(row.seq),
        event_type: row.event_type,
        status: row.status,
        attempts: row.attempts,
        response_status: row.response_status,
        error: row.error,
        duration_ms: row.duration_ms,
        first_attempt_at: row.first_attempt_at.toISOString(),
        last_attempt_at: row.last_attempt_at.toISOString(),
        next_attempt_at: row.next_attempt_at?.toISOString() ?? null,
      }))
      return { webhook_id: id, deliveries, total_count: total, limit, skip }
    },
    replay: replay(deps),
  })
}
