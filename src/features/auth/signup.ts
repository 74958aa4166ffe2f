import type { Keystore } from '#engines/custody/keystore.ts'
import type { Wallet } from '#engines/custody/wallet-store.ts'
import type { SignupGrants } from '#features/credits/signup-grants.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Caller, RequestFacts } from '#kernel/contract/caller.ts'
import { preparedAct } from '#kernel/contract/operation.ts'
import { agentId, type Random } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { AuthInput } from './contract.ts'
import type { OnSignup } from './register.ts'
import * as store from './store.ts'

type SignupDeps = {
  clock: Clock
  random: Random
  keystore: Pick<Keystore, 'prepare' | 'provision'>
  creditsOf: (tx: Tx, userId: string) => Promise<number>
  walletsOf: (tx: Tx, userId: string) => Promise<Wallet[]>
  signups: Pick<SignupGrants, 'forPerson'>
  onSignup: OnSignup
  announceQueued: () => void
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

/** The first call creates the user of a person; every later call returns the same user. */
export function createSignupHandler(deps: SignupDeps) {
  const { clock, random, keystore, creditsOf, walletsOf, signups, onSignup, announceQueued } = deps
  const prepare = async (body: AuthInput<'signup'>, caller: Caller) => ({
    body,
    // Sealing wallet keys may be a network call, so it happens outside the transaction.
    wallets: caller.person?.hasSignedUp ? [] : await keystore.prepare(caller.userId),
  })
  type Prepared = Awaited<ReturnType<typeof prepare>>

  return preparedAct(
    prepare,
    async ({ body, wallets }: Prepared, caller: Caller, { tx, address, afterCommit }: RequestFacts) => {
      const { userId, person } = caller
      if (!tx || !person) throw new Error('a sign-up outside a transaction, or without a person')
      const now = clock.now()
      const name = 'name' in body && typeof body.name === 'string' ? body.name.slice(0, namesMax) : null
      const row = {
        id: userId,
        agent_id: agentId(now, random),
        auth_scheme: 'oauth' as const,
        created_at: now,
      }
      const isCreated = await store.addPersonUser(tx, { ...row, name, email: person.email })
      if (!isCreated) {
        return toAnswer({
          user: await store.userOf(tx, userId),
          wallets: await walletsOf(tx, userId),
          credits: await creditsOf(tx, userId),
          created: false,
        })
      }
      await store.setSignupBody(tx, userId, body)
      const provisioned = await keystore.provision(tx, wallets)
      const credits = await signups.forPerson(tx, { userId, email: person.email, address }, now)
      await onSignup(tx, { userId, wallets: provisioned })
      afterCommit?.(announceQueued)
      return toAnswer({ user: row, wallets: provisioned, credits, created: true })
    },
  )
}
