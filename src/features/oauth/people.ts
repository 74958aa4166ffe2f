import { createHash, randomInt, timingSafeEqual } from 'node:crypto'
import type { Transact } from '#durable/transactions.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import { addressKey } from '#kernel/address-key.ts'
import type { ActScope } from '#kernel/caller.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { SendEmail } from '#kernel/email.ts'
import { Fault } from '#kernel/fault.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import { builder, fetchOne, type Queryable, query } from '#store/query.ts'
import type { EmailCodeRow } from '#store/tables/oauth.ts'
import { readEmail } from './email-address.ts'
import type { KnownBrowsers } from './known-browsers.ts'
import { hashPassword, isPassword } from './passwords.ts'
import { type Budget, guessesPerAddress, type SignInLimits } from './sign-in-limits.ts'

export type Person = { id: string; email: string; name?: string }
/** Why a form was refused; the page shows a sentence for each. */
export type Refusal =
  | 'credentials'
  | 'email'
  | 'password'
  | 'code'
  | 'expired'
  | 'limited'
  /** Too many guesses of others at this account: a code by email, or a browser that signed in before, still works. */
  | 'crowded'
  | 'notSent'
  | 'passkeyUnknown'
  | 'passkeyInvalid'
  | 'passkeyExpired'
  | 'passkeyTaken'
  | 'passkeysFull'
  // Of a sign-in at an external identity provider.
  | 'unverified'
  | 'taken'
  | 'interrupted'
  | 'declined'
  | 'rejected'
export type Outcome<T> = { ok: true; value: T } | { ok: false; why: Refusal }

/** Where a form comes from. */
export type Origin = {
  address: string
  /** The token of a browser that signed in before. */
  browser?: string | undefined
}
export type Credentials = { email: string; password: string }
/** A code without a password signs in, and changes none. `isForPasskey`: it proves the address and signs nobody in. */
export type CodeRequest = { email: string; password?: string; isForPasskey?: boolean }
/** What a code has shown: the person, or an address for which a passkey is to be created. */
export type Confirmed = { person: Person } | { verifiedEmail: string }

export type People = {
  find(id: string): Promise<Person | undefined>
  signIn(form: Credentials, origin: Origin): Promise<Outcome<Person>>
  /** Sends a code; the account, or its new password, exists once `confirm` receives it. */
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
  knownBrowsers: Pick<KnownBrowsers, 'find'>
  mailQueue: MailQueue
  /** A new password ends all sessions and grants of the account, in its own commit. */
  revokeAccount: (accountId: string, act: ActScope) => Promise<void>
}

const codeMs = 10 * 60_000
const attemptsPerCode = 5
/** The limits allow 200 guesses an hour at one account, which find one code of eight digits in half a century. */
const codeDigits = 8
const codeForm = /^\d{8}$/
/** Guesses, or messages, per window of 15 minutes. */
const maxima = {
  pair: 10,
  account: 50,
  message: 5,
  messageAccount: 10,
  /** Beyond those of the account: the first one of each further address. */
  messageFirst: 50,
  messageAddress: 20,
} as const

const passwordMin = 10
const passwordMax = 256
const isLongEnough = (password: string): boolean =>
  password.length >= passwordMin && password.length <= passwordMax

const nameLengthMax = 200
/** What the person called themselves at the sign-up. */
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

const guessBudgets = (account: string, address: string) => {
  const from = addressKey(address)
  return {
    own: [{ name: `pair|${account}|${from}`, max: maxima.pair }, guessesPerAddress(from)],
    account: { name: `account|${account}`, max: maxima.account },
  }
}

/**
 * Counts a message, and returns what it was taken from; undefined: it is over a limit. What the limits of an address
 * refuse does not count against the account, and strangers who use up the account leave each new address its first.
 */
async function takeMessage(
  limits: SignInLimits,
  account: string,
  address: string,
): Promise<Budget[] | undefined> {
  const from = addressKey(address)
  const pair = `message|${account}|${from}`
  const first = { name: pair, max: 1 }
  const own = [
    { name: pair, max: maxima.message },
    { name: `message|${from}`, max: maxima.messageAddress },
  ]
  const over = await limits.take([...own, first])
  if (over.some((each) => each !== first)) return undefined
  const shared = { name: `message|${account}`, max: maxima.messageAccount }
  if ((await limits.take([shared])).length === 0) return [...own, shared]
  if (over.length > 0) return undefined
  const further = { name: `message|first|${account}`, max: maxima.messageFirst }
  return (await limits.take([further])).length === 0 ? [...own, further] : undefined
}

async function takeOfBrowser(limits: SignInLimits, browser: string): Promise<Budget[] | undefined> {
  const budgets = [{ name: `message|browser|${browser}`, max: maxima.message }]
  return (await limits.take(budgets)).length === 0 ? budgets : undefined
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
/** Sent instead of a code, so that the page and its duration reveal nothing about an address. */
const unknownAccountMessage = {
  subject: 'There is no Portico account with this address',
  text: 'A code for a sign-in was requested with this address, but it has no account at this gateway. Create one, or use the address of your account. Ignore this message if you did not ask for it.',
}

/** Creates the person, or sets the new password of an existing one. */
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

export function createPeople(deps: PeopleDeps): People {
  const { db, clock, sendEmail, limits, knownBrowsers } = deps

  const byEmail = (email: string) =>
    fetchOne(
      db,
      builder.selectFrom('person').select(['id', 'email', 'password_hash']).where('email', '=', email),
    )

  const store = storePerson(deps)

  return {
    find: (id) => findPerson(db, id),

    async signIn({ email: text, password }, { address, browser }) {
      const email = readEmail(text)
      if (email === undefined || password.length > passwordMax) return refuse('credentials')
      const found = await byEmail(email)
      const known = found && (await knownBrowsers.find(browser, found.id))
      const { own, account } = guessBudgets(email, address)
      const budgets = known ? [{ name: `browser|${known}`, max: maxima.pair }] : [...own, account]
      // Before the password is checked: a reply to each guess is what the limit has to prevent.
      const over = await limits.take(budgets)
      if (over.length > 0) return refuse(over.every((each) => each === account) ? 'crowded' : 'limited')
      if (!(await isPassword(password, found?.password_hash ?? undefined)) || !found)
        return refuse('credentials')
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
      const budgets = known ? await takeOfBrowser(limits, known) : await takeMessage(limits, email, address)
      if (!budgets) return refuse('limited')
      const now = clock.now()
      const code = String(randomInt(10 ** codeDigits)).padStart(codeDigits, '0')
      await query(
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
          password === undefined ? null : await hashPassword(password),
          codeHash(interaction, code),
          attemptsPerCode,
          now,
          later(now, codeMs),
          isForPasskey,
        ],
      )
      const isUnknown = password === undefined && !isForPasskey && !found
      try {
        await sendEmail({
          to: email,
          ...(isUnknown ? unknownAccountMessage : messageOf(code, request)),
        })
      } catch (error) {
        if (!(error instanceof Fault)) throw error
        await limits.giveBack(budgets)
        return refuse('notSent')
      }
      return accept({ email })
    },

    async confirm(interaction, code, { address }) {
      const budgets = [guessesPerAddress(addressKey(address))]
      if ((await limits.take(budgets)).length > 0) return refuse('limited')
      // One statement counts the attempt and reads the code, so that parallel guesses are counted, too.
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
