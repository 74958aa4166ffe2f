import type { Transact } from '#durable/transactions.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import type { Clock } from '#kernel/clock.ts'
import { isUuid, type Random, uuidv7 } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'
import type { Queryable } from '#store/query.ts'
import type { Records } from './authorization-server-records.ts'
import type { Outcome, Person, Refusal } from './email-sign-in.ts'
import { createPasskeyChallenges } from './passkey-challenges.ts'
import {
  type CreationOptions,
  creationOptions,
  type RequestOptions,
  requestOptions,
} from './passkey-options.ts'
import { createPasskeyStore, handleOf, type Passkey, passkeysMax } from './passkey-store.ts'
import { readCredential, relyingPartyOf, verifyNewPasskey } from './passkey-verification.ts'
import { guessesPerAddress, type SignInLimits } from './sign-in-limits.ts'

/**
 * A sign-in with a passkey names no account; the credential identifies it. An account gets a passkey in a browser that
 * has proven its email address by a code, or in a session that has just signed in. `holder` is the id of the
 * interaction or the session that the browser's cookie names.
 */

export type NewPasskey = { credential: string; name: string }

export type Passkeys = {
  isPossible(): boolean
  max: number
  list(personId: string): Promise<Passkey[]>
  beginSignIn(holder: string): Promise<RequestOptions | undefined>
  signIn(holder: string, credential: string, address: string): Promise<Outcome<Person>>
  holdVerifiedEmail(interaction: string, email: string): Promise<void>
  verifiedEmailOf(interaction: string): Promise<string | undefined>
  beginSignUp(interaction: string): Promise<CreationOptions | undefined>
  signUp(interaction: string, passkey: NewPasskey): Promise<Outcome<Person>>
  beginAdding(holder: string, person: Person): Promise<CreationOptions | undefined>
  add(holder: string, person: Person, passkey: NewPasskey): Promise<Outcome<Person>>
  remove(person: Person, id: string): Promise<void>
}

type PasskeysDeps = {
  db: Queryable
  transact: Transact
  clock: Clock
  random: Random
  log: Log
  baseUrl: () => string
  records: Pick<Records, 'of'>
  limits: SignInLimits
  mailQueue: MailQueue
}

const nameMax = 60
const verifiedSeconds = 600

const refuse = (why: Refusal) => ({ ok: false, why }) as const

/** Puts the name on one line, without characters that change the direction or the look of the text after it. */
const readName = (text: string): string =>
  text
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
    .trim()
    .slice(0, nameMax)
    .toWellFormed() || 'Passkey'

export function createPasskeys(deps: PasskeysDeps): Passkeys {
  const { clock, random, baseUrl, records, limits, mailQueue } = deps
  const challenges = createPasskeyChallenges({ records, random })
  const verifiedEmails = records.of('VerifiedEmail')
  const store = createPasskeyStore(deps)
  const partyOf = () => relyingPartyOf(baseUrl())

  const verifiedEmailOf = async (interaction: string): Promise<string | undefined> => {
    const found = await verifiedEmails.find(interaction)
    return typeof found?.email === 'string' ? found.email : undefined
  }

  const begin = async (holder: string, purpose: 'sign-up' | 'add', owner: Person) => {
    const party = partyOf()
    if (!party) return undefined
    const known = await store.idsOf(owner.id)
    const { id: personId, email } = owner
    const challenge = await challenges.issue(holder, purpose, { personId, email })
    return creationOptions({ party, challenge, handle: handleOf(personId), email, excluded: known })
  }

  const finish = async (
    holder: string,
    purpose: 'sign-up' | 'add',
    { credential: text, name: given, isOwner }: NewPasskey & { isOwner: (person: Person) => boolean },
  ): Promise<Outcome<Person>> => {
    const party = partyOf()
    const taken = await challenges.take(holder, purpose)
    if (!party || !taken?.owner) return refuse('passkeyExpired')
    const owner = { id: taken.owner.personId, email: taken.owner.email }
    // The browser may have proven another address, or changed its session, since the challenge was issued.
    if (!isOwner(owner)) return refuse('passkeyExpired')
    const credential = readCredential(text)
    const made =
      credential && (await verifyNewPasskey(credential, { challengeHash: taken.challengeHash, party }))
    if (!made) return refuse('passkeyInvalid')
    const name = readName(given)
    const refused = await store.add(owner, made, { name, isNew: purpose === 'sign-up' })
    if (refused) return refuse(refused)
    mailQueue.wake()
    return { ok: true, value: owner }
  }

  return {
    isPossible: () => partyOf() !== undefined,
    max: passkeysMax,
    verifiedEmailOf,
    list: store.list,

    async beginSignIn(holder) {
      const party = partyOf()
      return party && requestOptions({ party, challenge: await challenges.issue(holder, 'sign-in') })
    },
    async signIn(holder, credential, address) {
      const budgets = [guessesPerAddress(addressKey(address))]
      if ((await limits.take(budgets)).length > 0) return refuse('limited')
      const party = partyOf()
      const taken = await challenges.take(holder, 'sign-in')
      if (!party || !taken) return refuse('passkeyExpired')
      const person = await store.personOfSignature(credential, { challengeHash: taken.challengeHash, party })
      if (!person) return refuse('passkeyUnknown')
      await limits.giveBack(budgets)
      return { ok: true, value: person }
    },

    async holdVerifiedEmail(interaction, email) {
      await verifiedEmails.upsert(interaction, { email }, verifiedSeconds)
    },
    async beginSignUp(interaction) {
      const email = await verifiedEmailOf(interaction)
      if (email === undefined) return undefined
      const known = await store.byEmail(email)
      return begin(interaction, 'sign-up', known ?? { id: uuidv7(clock.now(), random), email })
    },
    async signUp(interaction, passkey) {
      const verified = await verifiedEmailOf(interaction)
      const isOwner = ({ email }: Person) => email === verified
      const made = await finish(interaction, 'sign-up', { ...passkey, isOwner })
      if (made.ok) await verifiedEmails.destroy(interaction)
      return made
    },

    beginAdding: (holder, person) => begin(holder, 'add', person),
    add: (holder, person, passkey) =>
      finish(holder, 'add', { ...passkey, isOwner: ({ id }) => id === person.id }),

    async remove(person, id) {
      if (isUuid(id) && (await store.remove(person.id, id))) mailQueue.wake()
    },
  }
}
