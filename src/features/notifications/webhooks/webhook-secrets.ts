import { LRUCache } from 'lru-cache'
import { type Clock, later } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { KeyEncryptionKeys, Sealer } from '#kernel/wire/sealed-secret.ts'
import type { Queryable } from '#store/query.ts'
import type { WebhookSecretRow } from '#store/tables/webhooks.ts'
import { secretBytes } from './signature.ts'
import * as store from './webhook-store.ts'

/** The secrets that sign messages are sealed in the database, and opened when a message is sent. */

export const formerValidMs = 86_400_000
const formerMax = 2
const openedMax = 1_000
const firstId = '00000000-0000-0000-0000-000000000000'

export type NewSecret = { row: WebhookSecretRow; secret: Buffer }
export type WebhookSecrets = {
  /** Makes a sealed secret, outside any transaction, because sealing may be a network call. */
  make(webhookId: string): Promise<NewSecret>
  /** Returns the secrets that sign now, newest first. */
  signing(db: Queryable, webhookId: string): Promise<Buffer[]>
  /** Makes the new secret the current one, and returns until when the former one signs. */
  replace(tx: Tx, made: NewSecret): Promise<Date>
  rewrap(): Promise<void>
}

type SecretsDeps = {
  db: Queryable
  sealer: Sealer
  keyEncryptionKeys: KeyEncryptionKeys
  clock: Clock
  random: Random
  log: Log
}

const aadOf = ({ webhook_id, secret_id }: Pick<WebhookSecretRow, 'webhook_id' | 'secret_id'>) =>
  ['webhook', webhook_id, secret_id].join('|')

export function createWebhookSecrets({
  db: pool,
  sealer,
  keyEncryptionKeys,
  clock,
  random,
  log,
}: SecretsDeps): WebhookSecrets {
  // A secret never changes, so an opened one is never stale.
  const opened = new LRUCache<string, Buffer>({ max: openedMax })
  const open = async (row: WebhookSecretRow): Promise<Buffer> => {
    const known = opened.get(row.secret_id)
    if (known) return known
    const secret = await sealer.unseal(row, aadOf(row))
    opened.set(row.secret_id, secret)
    return secret
  }
  const rewrapOne = async (row: WebhookSecretRow): Promise<void> => {
    try {
      await store.replaceSealed(pool, row, await sealer.seal(await open(row), aadOf(row)))
    } catch (error) {
      log.error({ error, webhook: row.webhook_id }, 'a secret of a webhook cannot be decrypted')
    }
  }
  return {
    async make(webhookId) {
      const now = clock.now()
      const secret = Buffer.from(random.bytes(secretBytes))
      const ids = { secret_id: uuidv7(now, random), webhook_id: webhookId }
      const sealed = await sealer.seal(secret, aadOf(ids))
      return { row: { ...ids, ...sealed, created_at: now, expires_at: null }, secret }
    },
    signing: async (db, webhookId) =>
      Promise.all((await store.secretsOf(db, webhookId, clock.now())).map(open)),
    async replace(tx, { row }) {
      const until = later(clock.now(), formerValidMs)
      await store.expireSecrets(tx, row.webhook_id, until, formerMax)
      await store.insertSecret(tx, row)
      return until
    },
    async rewrap() {
      for (let after = firstId; ; ) {
        const rows = await store.secretsOfOtherKeys(pool, keyEncryptionKeys.current.id, after)
        for (const row of rows) await rewrapOne(row)
        const last = rows.at(-1)
        if (!last) return
        after = last.secret_id
      }
    },
  }
}
