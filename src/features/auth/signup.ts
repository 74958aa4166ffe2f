import type { Transact } from '#durable/transactions.ts'
import type { Keystore } from '#engines/custody/keystore.ts'
import type { Wallet } from '#engines/custody/wallet-store.ts'
import type { SignupGrants } from '#features/credits/signup-grants.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Caller, RequestFacts } from '#kernel/contract/caller.ts'
import { preparedAct } from '#kernel/contract/operation.ts'
import { agentId, type Random } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { AuthInput } from './contract.ts'
import type { OnSignup } from './register.ts'
import * as store from './store.ts'

type SignupDeps = {
  db: Queryable
  transact: Transact
  clock: Clock
  random: Random
  keystore: Pick<Keystore, 'prepare' | 'provision'>
  creditsOf: (tx: Tx, userId: string) => Promise<number>
  walletsOf: (tx: Tx, userId: string) => Promise<Wallet[]>
  signups: Pick<SignupGrants, 'forPerson'>
  onSignup: OnSignup
  announceSignUp: (userId: string) => void
}

const namesMax = 256

type Account = {
  user: { id: string; agent_id: string }
  wallets: Wallet[]
  credits: number
  created: boolean
}

const toAnswer = ({ user, wallets, credits, created }: Account) => ({
  user_id: user.id,
  agent_id: user.agent_id,
  created,
  wallets: wallets.map(({ kind, address }) => ({
    address,
    chain_type: kind === 'svm' ? 'solana' : 'evm',
  })),
  wallets_provisioning: false,
  credits_available: credits,
})

type NewPerson = {
  userId: string
  email: string
  name: string | null
  wallets: Prepared['wallets']
  address: string
}
type Prepared = { body: AuthInput<'signup'>; wallets: Awaited<ReturnType<Keystore['prepare']>> }

/** Creates the user of a person, its wallets and its first credits; undefined if the person has a user. */
async function createUser(
  { clock, random, keystore, signups, onSignup }: SignupDeps,
  tx: Tx,
  { userId, email, name, wallets, address }: NewPerson,
): Promise<Account | undefined> {
  const now = clock.now()
  const user = { id: userId, agent_id: agentId(now, random), auth_scheme: 'oauth' as const, created_at: now }
  if (!(await store.addPersonUser(tx, { ...user, name, email }))) return undefined
  const provisioned = await keystore.provision(tx, wallets)
  const credits = await signups.forPerson(tx, { userId, email, address }, now)
  await onSignup(tx, { userId, wallets: provisioned })
  return { user, wallets: provisioned, credits, created: true }
}

/** Signs up a person who connects an app, before the app makes its first call. */
export type SignUp = (person: { id: string; email: string }, address: string) => Promise<void>

export const createSignUp =
  (deps: SignupDeps): SignUp =>
  async ({ id: userId, email }, address) => {
    const { db, transact, keystore, announceSignUp } = deps
    if (await store.hasUser(db, userId)) return
    const wallets = await keystore.prepare(userId)
    const created = await transact((tx) =>
      createUser(deps, tx, { userId, email, name: null, wallets, address }),
    )
    if (created) announceSignUp(userId)
  }

/**
 * The first call stores its body and the name in it, and creates the user if the person has none yet; every later call
 * returns the same user.
 */
export function createSignupHandler(deps: SignupDeps) {
  const { keystore, creditsOf, walletsOf, announceSignUp } = deps
  const prepare = async (body: AuthInput<'signup'>, caller: Caller): Promise<Prepared> => ({
    body,
    // Sealing wallet keys may be a network call, so it happens outside the transaction.
    wallets: caller.person?.hasSignedUp ? [] : await keystore.prepare(caller.userId),
  })

  return preparedAct(
    prepare,
    async ({ body, wallets }: Prepared, caller: Caller, { tx, address, afterCommit }: RequestFacts) => {
      const { userId, person } = caller
      if (!tx || !person) throw new Error('a sign-up outside a transaction, or without a person')
      const name = 'name' in body && typeof body.name === 'string' ? body.name.slice(0, namesMax) : null
      const created = caller.person?.hasSignedUp
        ? undefined
        : await createUser(deps, tx, { userId, email: person.email, name, wallets, address })
      if (created) afterCommit?.(() => announceSignUp(userId))
      const isFirst = await store.setSignupBody(tx, userId, body)
      if (created) return toAnswer(created)
      if (isFirst) await store.setUserName(tx, userId, name)
      return toAnswer({
        user: await store.userOf(tx, userId),
        wallets: await walletsOf(tx, userId),
        credits: await creditsOf(tx, userId),
        created: isFirst,
      })
    },
  )
}
