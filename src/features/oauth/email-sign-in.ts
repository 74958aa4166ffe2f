import { createHash, randomInt, timingSafeEqual } from 'node:crypto'
import type { Transact } from '#durable/transactions.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { ActScope } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { SendEmail } from '#kernel/wire/email.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'
import { builder, fetchOne, type Queryable, query } from '#store/query.ts'
import type { EmailCodeRow } from '#store/tables/oauth.ts'
import { createPacedEmail } from './constant-time-email.ts'
import { readEmail } from './email-address.ts'
import type { KnownBrowsers } from './known-browsers.ts'
import type { MessageLimits } from './message-limits.ts'
import type { Passwords } from './passwords.ts'
import { guessesPerAddress, type SignInLimits } from './sign-in-limits.ts'

export type Person = { id: string; email: string; name?: string }
export type Refusal =
  | 'credentials'
  | 'email'
  | 'password'
  | 'code'
  | 'expired'
  | 'limited'
  /** Others have guessed too often at this account; a code by email, or a browser that is known, still works. */
  | 'crowded'
  /** Too many passwords wait to be checked; the attempt was not counted. */
  | 'overloaded'
  | 'notSent'
  | 'passkeyUnknown'
  | 'passkeyInvalid'
  | 'passkeyExpired'
  | 'passkeyTaken'
  | 'passkeysFull'
  // These reasons belong to a sign-in at an external identity provider.
  | 'unverified'
  | 'taken'
  | 'interrupted'
  | 'declined'
  | 'rejected'
export type Outcome<T> = { ok: true; value: T } | { ok: false; why: Refusal }

export type Origin = {
  address: string
  /** The token of a browser in which somebody has signed in before. */
  browser?: string | undefined
}
export type Credentials = { email: string; password: string }
/**
 * A code that is requested without a password signs in and changes no password. With `isForPasskey` it only proves the
 * address.
 */
export type CodeRequest = { email: string; password?: string; isForPasskey?: boolean }
export type Confirmed = { person: Person } | { verifiedEmail: string }

export type People = {
  find(id: string): Promise<Person | undefined>
  signIn(form: Credentials, origin: Origin): Promise<Outcome<Person>>
  /** Sends a code; the account, or its new password, exists once `confirm` receives the code. */
  begin(form: CodeRequest, interaction: string, origin: Origin): Promise<Outcome<{ email: string }>>
  confirm(interaction: string, code: string, origin: Origin): Promise<Outcome<Confirmed>>
}

type PeopleDeps = {
  db: Queryable
  transact: Transact
  clock: Clock
  random: Random
  sendEmail: SendEmail
  limits: SignInLimits
  messageLimits: MessageLimits
  passwords: Passwords
  knownBrowsers: Pick<KnownBrowsers, 'find'>
  mailQueue: MailQueue
  /** A new password ends all sessions and grants of the account, in the commit that stores it. */
  revokeAccount: (accountId: string, act: ActScope) => Promise<void>
}

const codeMs = 10 * 60_000
const attemptsPerCode = 5
/** The limits allow 200 guesses an hour at one account, so it takes half a century to guess a code of eight digits. */
const codeDigits = 8
const codeForm = /^\d{8}$/
/** The most guesses per window of 15 minutes. */
const maxima = { pair: 10, account: 50 } as const

const passwordMin = 10
const passwordMax = 256
const isLongEnough = (password: string): boolean =>
  password.length >= passwordMin && password.length <= passwordMax

const nameLengthMax = 200
const nameOf = (signup: Record<string, unknown> | null): string | undefined => {
  const name = signup?.name
  return typeof name === 'string' && name !== '' && name.length <= nameLengthMax ? name : undefined
}

async function findPerson(db: Queryable, id: string): Promise<Person | undefined> {
  const row = await fetchOne(
    db,
    builder.selectFrom('person').select(['id', 'email', 'signup']).where('id', '=', id),
  )
  if (!row) return undefined
  const name = nameOf(row.signup)
  return { id, email: row.email, ...(name !== undefined && { name }) }
}

const refuse = (why: Refusal) => ({ ok: false, why }) as const
const accept = <T>(value: T) => ({ ok: true, value }) as const

const codeColumns = ['email', 'password_hash', 'code_hash', 'is_for_passkey'] as const

const codeHash = (interaction: string, code: string): Buffer =>
  createHash('sha256').update(`${interaction}|${code}`).digest()

const isOverloaded = (error: unknown): boolean => error instanceof Fault && error.code === 'overloaded'

const guessBudgets = (account: string, address: string) => {
  const from = addressKey(address)
  return {
    own: [{ name: `pair|${account}|${from}`, max: maxima.pair }, guessesPerAddress(from)],
    account: { name: `account|${account}`, max: maxima.account },
  }
}

const effectOf = ({ password, isForPasskey }: CodeRequest): string => {
  if (isForPasskey) return 'Entering it lets that browser create a passkey for this account'
  return password === undefined
    ? 'Entering it signs that browser in'
    : 'Entering it sets the password of this account'
}
const messageOf = (code: string, request: CodeRequest) => ({
  subject: `${code} is your Portico code`,
  text: `Your code is ${code}. It is valid for 10 minutes and works only in the browser that asked for it. ${effectOf(request)}: ignore this message if you did not ask for it.`,
})
const passwordChanged =
  'A new password was set with a code that was sent to this address. Every session and connected app was ended.'
/**
 * An address without an account gets this message instead of a code, so that neither the page nor its response time
 * reveals which addresses have accounts.
 */
const unknownAccountMessage = {
  subject: 'There is no Portico account with this address',
  text: 'A code for a sign-in was requested with this address, but it has no account at this gateway. Create one, or use the address of your account. Ignore this message if you did not ask for it.',
}

const storePerson =
  ({ transact, clock, random, revokeAccount, mailQueue }: PeopleDeps) =>
  async (email: string, passwordHash: string): Promise<Person> => {
    let callbacks: (() => void)[] = []
    const id = await transact(async (tx) => {
      callbacks = []
      const now = clock.now()
      const [row] = await query<{ id: string; is_new: boolean }>(
        tx,
        `insert into person (id, email, password_hash, created_at) values ($1, $2, $3, $4)
         on conflict (email) do update set password_hash = excluded.password_hash
         returning id, (xmax = 0) as is_new`,
        [uuidv7(now, random), email, passwordHash, now],
      )
      const { id, is_new: isNew } = row!
      if (!isNew) {
        await revokeAccount(id, { tx, afterCommit: (run) => callbacks.push(run) })
        await mailQueue.add(tx, id, 'password_changed', { text: passwordChanged })
        callbacks.push(() => mailQueue.wake())
      }
      return id
    })
    for (const run of callbacks) run()
    return { id, email }
  }

type NewCode = {
  interaction: string
  email: string
  passwordHash: string | null
  code: string
  isForPasskey: boolean
}
const codeStore =
  ({ db, clock }: Pick<PeopleDeps, 'db' | 'clock'>) =>
  ({ interaction, email, passwordHash, code, isForPasskey }: NewCode) => {
    const now = clock.now()
    return query(
      db,
      `insert into email_code (interaction, email, password_hash, code_hash, attempts_left, created_at, expires_at, is_for_passkey)
       values ($1, $2, $3, $4, $5, $6, $7, $8)
       on conflict (interaction) do update set email = excluded.email, password_hash = excluded.password_hash,
         code_hash = excluded.code_hash, attempts_left = excluded.attempts_left,
         created_at = excluded.created_at, expires_at = excluded.expires_at,
         is_for_passkey = excluded.is_for_passkey
       returning interaction`,
      [
        interaction,
        email,
        passwordHash,
        codeHash(interaction, code),
        attemptsPerCode,
        now,
        later(now, codeMs),
        isForPasskey,
      ],
    )
  }

export function createPeople(deps: PeopleDeps): People {
  const { db, clock, limits, messageLimits, passwords, knownBrowsers } = deps
  const emails = createPacedEmail(deps.sendEmail)

  const byEmail = (email: string) =>
    fetchOne(
      db,
      builder.selectFrom('person').select(['id', 'email', 'password_hash']).where('email', '=', email),
    )

  const store = storePerson(deps)
  const storeCode = codeStore(deps)

  return {
    find: (id) => findPerson(db, id),

    async signIn({ email: text, password }, { address, browser }) {
      const email = readEmail(text)
      if (email === undefined || password.length > passwordMax) return refuse('credentials')
      const found = await byEmail(email)
      const known = found && (await knownBrowsers.find(browser, found.id))
      const { own, account } = guessBudgets(email, address)
      const budgets = known ? [{ name: `browser|${known}`, max: maxima.pair }] : [...own, account]
      // The attempt is counted before the password is checked, because a guess beyond the limit must not be answered.
      const over = await limits.take(budgets)
      if (over.length > 0) return refuse(over.every((each) => each === account) ? 'crowded' : 'limited')
      const requester = { address: addressKey(address), knownPerson: known && found.id }
      try {
        const isRight = await passwords.isRight(password, found?.password_hash ?? undefined, requester)
        if (!isRight || !found) return refuse('credentials')
      } catch (error) {
        await limits.giveBack(budgets)
        if (isOverloaded(error)) return refuse('overloaded')
        throw error
      }
      await limits.giveBack(budgets)
      return accept({ id: found.id, email })
    },

    async begin(request, interaction, { address, browser }) {
      const { email: text, password, isForPasskey = false } = request
      const email = readEmail(text)
      if (email === undefined) return refuse('email')
      if (password !== undefined && !isLongEnough(password)) return refuse('password')
      const found = await byEmail(email)
      const known = found && (await knownBrowsers.find(browser, found.id))
      const budgets = known
        ? await messageLimits.takeOfBrowser(known)
        : await messageLimits.take(email, address)
      if (!budgets) return refuse('limited')
      const requester = { address: addressKey(address), knownPerson: known && found.id }
      let passwordHash: string | null
      try {
        passwordHash = password === undefined ? null : await passwords.hash(password, requester)
      } catch (error) {
        await limits.giveBack(budgets)
        if (isOverloaded(error)) return refuse('overloaded')
        throw error
      }
      const code = String(randomInt(10 ** codeDigits)).padStart(codeDigits, '0')
      await storeCode({ interaction, email, passwordHash, code, isForPasskey })
      const isUnknown = password === undefined && !isForPasskey && !found
      const unknown = isUnknown ? await messageLimits.takeUnknown(email) : []
      try {
        if (!unknown) await emails.holdBack()
        else
          await emails.send({
            to: email,
            ...(isUnknown ? unknownAccountMessage : messageOf(code, request)),
          })
      } catch (error) {
        if (!(error instanceof Fault)) throw error
        await limits.giveBack([...budgets, ...(unknown ?? [])])
        return refuse('notSent')
      }
      return accept({ email })
    },

    async confirm(interaction, code, { address }) {
      const budgets = [guessesPerAddress(addressKey(address))]
      if ((await limits.take(budgets)).length > 0) return refuse('limited')
      // One statement counts the attempt and reads the code, so that parallel guesses count too.
      const [row] = await query<Pick<EmailCodeRow, (typeof codeColumns)[number]>>(
        db,
        `update email_code set attempts_left = attempts_left - 1
         where interaction = $1 and attempts_left > 0 and expires_at > $2
         returning ${codeColumns.join(', ')}`,
        [interaction, clock.now()],
      )
      if (!row) return refuse('expired')
      if (!codeForm.test(code) || !timingSafeEqual(row.code_hash, codeHash(interaction, code)))
        return refuse('code')
      await limits.giveBack(budgets)
      const used = await query(
        db,
        'delete from email_code where interaction = $1 and code_hash = $2 returning interaction',
        [interaction, row.code_hash],
      )
      if (used.length !== 1) return refuse('expired')
      if (row.is_for_passkey) return accept({ verifiedEmail: row.email })
      if (row.password_hash !== null) return accept({ person: await store(row.email, row.password_hash) })
      const found = await byEmail(row.email)
      return found ? accept({ person: { id: found.id, email: found.email } }) : refuse('expired')
    },
  }
}
