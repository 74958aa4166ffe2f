import { type CreateInput, webhooksMax } from '#features/notifications/webhooks-contract.ts'
import { type ActScope, appOf, type Caller, type RequestFacts, toActScope } from '#kernel/contract/caller.ts'
import { conflict } from '#kernel/contract/fault.ts'
import { uuidv7 } from '#kernel/id.ts'
import type { WebhooksDeps } from './deps.ts'
import { secretText } from './signature.ts'
import { find, isOwn, lock, noWebhook } from './webhook-access.ts'
import { addEvent, createdEvent, updatedEvent } from './webhook-events.ts'
import type { NewSecret } from './webhook-secrets.ts'
import * as store from './webhook-store.ts'
import { assertUnused, parseWebhookUrl } from './webhook-url.ts'
import { view } from './webhook-view.ts'

/**
 * The answers of these operations contain a secret. Only the app or the key pair that added the webhook or replaced its
 * secret gets it.
 */

type Made = { url: string; made: NewSecret }
type Insertion = Made & { input: CreateInput; caller: Caller }

async function insert(deps: WebhooksDeps, { input, url, made, caller }: Insertion, act: ActScope) {
  const { tx } = act
  const { userId } = caller
  await lock(tx, caller, deps.holdAccess)
  const existing = await store.webhooksOf(tx, userId)
  assertUnused(existing, caller, { url })
  if (existing.length >= webhooksMax)
    throw conflict(
      `A user has at most ${webhooksMax} webhooks: delete one first`,
      `${existing.length} webhooks exist`,
    )
  const { types = null, description = '' } = input
  const row = {
    webhook_id: made.row.webhook_id,
    user_id: userId,
    url,
    types,
    description,
    client_id: appOf(caller),
    created_at: deps.clock.now(),
  }
  await store.insertWebhook(tx, row)
  await deps.secrets.replace(tx, made)
  await addEvent(deps, caller, act, createdEvent(row))
  // The cursor is inserted after the webhook's own event, so that it does not post that event.
  await store.insertCursor(tx, row)
  return { ...view(await find(tx, caller, row.webhook_id)), secret: secretText(made.secret) }
}

/** The reply is not stored, because it contains the secret: a repeat under the same key reads the secret again. */
export function create(deps: WebhooksDeps) {
  const { db, clock, random, secrets } = deps
  return Object.assign(
    async (input: CreateInput, caller: Caller, request: RequestFacts) => {
      if (!request.isReplay)
        return insert(deps, { ...(request.prepared as Made), input, caller }, toActScope(request))
      const url = parseWebhookUrl(input.url, deps)
      const all = await store.webhooksOf(db, caller.userId)
      // Idempotency keys belong to the user, so another app may know the key: only the webhook's own app gets the secret.
      const row = all.find((each) => each.url === url && isOwn(each, caller))
      if (!row) throw noWebhook()
      return { ...view(row), secret: await currentSecret(deps, row.webhook_id) }
    },
    {
      prepare: async (input: CreateInput): Promise<Made> => ({
        url: parseWebhookUrl(input.url, deps),
        made: await secrets.make(uuidv7(clock.now(), random)),
      }),
    },
  )
}

async function currentSecret({ db, secrets }: WebhooksDeps, webhookId: string): Promise<string> {
  const [current] = await secrets.signing(db, webhookId)
  if (!current) throw noWebhook()
  return secretText(current)
}

type WebhookInput = { webhook_id: string }

export function rotate(deps: WebhooksDeps) {
  const { db, secrets, holdAccess } = deps
  return Object.assign(
    async ({ webhook_id: id }: WebhookInput, caller: Caller, request: RequestFacts) => {
      if (request.isReplay) {
        if (!isOwn(await find(db, caller, id), caller)) throw noWebhook()
        const former = await store.formerSecretEnd(db, id)
        const secret = await currentSecret(deps, id)
        return { webhook_id: id, secret, former_valid_until: former?.toISOString() ?? null }
      }
      const act = toActScope(request)
      await lock(act.tx, caller, holdAccess)
      const row = await find(act.tx, caller, id)
      await store.fenceDelivery(act.tx, id)
      const owner = appOf(caller)
      if (owner !== row.client_id) await store.setOwner(act.tx, id, owner)
      const made = request.prepared as NewSecret
      const until = await secrets.replace(act.tx, made)
      await addEvent(deps, caller, act, updatedEvent({ ...row, client_id: owner }, ['secret']))
      return { webhook_id: id, secret: secretText(made.secret), former_valid_until: until.toISOString() }
    },
    {
      async prepare({ webhook_id: id }: WebhookInput, caller: Caller): Promise<NewSecret> {
        await find(db, caller, id)
        return secrets.make(id)
      },
    },
  )
}
