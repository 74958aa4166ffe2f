import type { Transact } from '#durable/transactions.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import { mailName } from '#engines/person-mails/mail-text.ts'
import type { Clock } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'
import type { PasskeyRow } from '#store/tables/oauth.ts'
import type { Person, Refusal } from './email-sign-in.ts'
import { readCredential, type VerifiedCredential, verifySignature } from './passkey-verification.ts'

export type Passkey = Readonly<{
  id: string
  name: string
  isSynced: boolean
  createdAt: Date
  lastUsedAt: Date | null
}>

export const passkeysMax = 10

export const handleOf = (personId: string): string =>
  Buffer.from(personId.replaceAll('-', ''), 'hex').toString('base64url')

type PasskeyStoreDeps = {
  db: Queryable
  transact: Transact
  clock: Clock
  random: Random
  log: Log
  mailQueue: Pick<MailQueue, 'add'>
}

const toPasskey = ({ id, name, is_synced, created_at, last_used_at }: PasskeyRow): Passkey => ({
  id,
  name,
  isSynced: is_synced,
  createdAt: created_at,
  lastUsedAt: last_used_at,
})

const named = (name: string): string => {
  const shown = mailName(name)
  return shown === '' ? 'A passkey without a name' : `The passkey “${shown}”`
}

export function createPasskeyStore({ db, transact, clock, random, log, mailQueue }: PasskeyStoreDeps) {
  const byEmail = (email: string) =>
    fetchOne(db, builder.selectFrom('person').select(['id', 'email']).where('email', '=', email))
  const rowsOf = (personId: string) =>
    fetchAll(
      db,
      builder
        .selectFrom('passkey')
        .selectAll()
        .where('person_id', '=', personId)
        .orderBy('created_at')
        .limit(passkeysMax),
    )

  /** Adds a passkey, and creates the account of an address that has none yet if `isNew` allows it. */
  const add = (owner: Person, made: VerifiedCredential, { name, isNew }: { name: string; isNew: boolean }) =>
    transact(async (tx): Promise<Refusal | undefined> => {
      const now = clock.now()
      if (isNew)
        await query(
          tx,
          `insert into person (id, email, created_at) values ($1, $2, $3)
           on conflict (email) do nothing returning id`,
          [owner.id, owner.email, now],
        )
      // The lock protects the number of passkeys of the account; another account may have got the address meanwhile.
      const [person] = await query<Person>(
        tx,
        'select id, email from person where id = $1 and email = $2 for update',
        [owner.id, owner.email],
      )
      if (!person) return 'passkeyExpired'
      const [stored] = await query<{ count: number }>(
        tx,
        'select count(*)::int as count from passkey where person_id = $1',
        [owner.id],
      )
      if ((stored?.count ?? 0) >= passkeysMax) return 'passkeysFull'
      const rows = await query(
        tx,
        `insert into passkey (credential_id, id, person_id, public_key, sign_count, is_synced, name, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (credential_id) do nothing returning id`,
        [
          made.credentialId,
          uuidv7(now, random),
          owner.id,
          made.publicKey,
          made.signCount,
          made.isSynced,
          name,
          now,
        ],
      )
      if (rows.length !== 1) return 'passkeyTaken'
      await mailQueue.add(tx, owner.id, 'passkey_added', {
        text: `${named(name)} was added. It signs you in.`,
      })
      return undefined
    })

  /** Returns the person whose passkey made the signature, if the passkey's counter has advanced. */
  const personOfSignature = async (
    text: string,
    expected: Parameters<typeof verifySignature>[2],
  ): Promise<Person | undefined> => {
    const credential = readCredential(text)
    if (!credential) return undefined
    const credentialId = Buffer.from(credential.id, 'base64url')
    const row = await fetchOne(
      db,
      builder
        .selectFrom('passkey as k')
        .innerJoin('person as p', 'p.id', 'k.person_id')
        .select(['k.public_key', 'p.id', 'p.email'])
        .where('k.credential_id', '=', credentialId),
    )
    if (!row || credential.response.userHandle !== handleOf(row.id)) return undefined
    const count = await verifySignature(credential, { credentialId, publicKey: row.public_key }, expected)
    if (count === undefined) return undefined
    const used = await query(
      db,
      `update passkey set sign_count = $2, last_used_at = $3
       where credential_id = $1 and (sign_count < $2 or (sign_count = 0 and $2 = 0)) returning id`,
      [credentialId, count, clock.now()],
    )
    if (used.length === 1) return { id: row.id, email: row.email }
    log.warn({ person_id: row.id }, 'passkey refused: its counter did not advance, so it may be copied')
    return undefined
  }

  return {
    byEmail,
    add,
    personOfSignature,
    async idsOf(personId: string): Promise<string[]> {
      const rows = await rowsOf(personId)
      return rows.map(({ credential_id }) => credential_id.toString('base64url'))
    },
    list: async (personId: string): Promise<Passkey[]> => (await rowsOf(personId)).map(toPasskey),
    remove: (personId: string, id: string): Promise<boolean> =>
      transact(async (tx) => {
        const [row] = await query<{ name: string }>(
          tx,
          'delete from passkey where id = $1 and person_id = $2 returning name',
          [id, personId],
        )
        if (!row) return false
        const text = `${named(row.name)} was removed. It signs nobody in any more.`
        await mailQueue.add(tx, personId, 'passkey_removed', { text })
        return true
      }),
  }
}
