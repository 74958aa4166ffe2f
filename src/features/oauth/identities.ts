import type { Transact } from '#durable/transactions.ts'
import type { Clock } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import { readEmail } from './email-address.ts'
import type { Outcome, Person } from './email-sign-in.ts'

export type VerifiedIdentity = { issuer: string; subject: string; email: string }
export type Identities = {
  /** Returns the person of an identity, and creates the person at the first sign-in. */
  enter(identity: VerifiedIdentity): Promise<Outcome<Person>>
}
type IdentitiesDeps = { transact: Transact; clock: Clock; random: Random }

/** OpenID Connect allows subjects of up to 255 characters. */
const subjectMax = 255

export function createIdentities({ transact, clock, random }: IdentitiesDeps): Identities {
  const known = async (tx: Tx, { issuer, subject, email }: VerifiedIdentity): Promise<Person | undefined> => {
    const [row] = await query<Person>(
      tx,
      `select p.id, p.email from person_identity i join person p on p.id = i.person_id
       where i.issuer = $1 and i.subject = $2`,
      [issuer, subject],
    )
    if (!row || row.email === email) return row
    // The address has changed at the provider. If it belongs to another person here, it stays with that person.
    const [renamed] = await query<Person>(
      tx,
      `update person set email = $2 where id = $1 and not exists (select from person where email = $2)
       returning id, email`,
      [row.id, email],
    )
    return renamed ?? row
  }

  /** The subject identifies a person; an address does not, because it may pass to somebody else. */
  const connect = async (
    tx: Tx,
    { issuer, subject, email }: VerifiedIdentity,
  ): Promise<Person | undefined> => {
    const now = clock.now()
    const [row] = await query<Person>(
      tx,
      `insert into person (id, email, created_at) values ($1, $2, $3)
       on conflict (email) do update set email = excluded.email
         where not exists (select from person_identity where person_id = person.id)
       returning id, email`,
      [uuidv7(now, random), email, now],
    )
    if (!row) return undefined
    await query(
      tx,
      `insert into person_identity (issuer, subject, person_id, created_at) values ($1, $2, $3, $4)
       returning person_id`,
      [issuer, subject, row.id, now],
    )
    return row
  }

  return {
    async enter({ issuer, subject, email: text }) {
      const email = readEmail(text)
      if (email === undefined || subject.length > subjectMax) return { ok: false, why: 'unverified' }
      const identity = { issuer, subject, email }
      return transact(async (tx) => {
        // Two browsers may bring the same new identity at the same time.
        await query(tx, 'select pg_advisory_xact_lock(hashtextextended($1, 7061952))', [email])
        const person = (await known(tx, identity)) ?? (await connect(tx, identity))
        return person ? { ok: true, value: person } : { ok: false, why: 'taken' }
      })
    },
  }
}
