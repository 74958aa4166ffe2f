import { createHash } from 'node:crypto'
import type { SignInLimits } from '#features/oauth/sign-in-limits.ts'
import type { Tx } from '#kernel/task/task.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'
import * as store from './bucket-store.ts'
import { mailboxOf } from './canonical-email.ts'
import type { Credits } from './credits.ts'

/** First credits require a proof that a script cannot repeat, because creating users costs nothing. */

export type SignupGrants = {
  /** A new agent proves nothing but its network address, so few agents of an address get credits. */
  forAgent(tx: Tx, user: { userId: string; address: string }, now: Date): Promise<number>
  /** A new person proves a mailbox, once. A network address gets few grants, because mailboxes cost little. */
  forPerson(tx: Tx, user: { userId: string; email: string; address: string }, now: Date): Promise<number>
  /** An agent without first credits gets them when its person links it, for one agent of each mailbox. */
  forLink(tx: Tx, link: { userId: string; email: string; address: string }, now: Date): Promise<number>
}
type SignupGrantsDeps = {
  grantSignup: Credits['grantSignup']
  /** The grants of a network address are limited per day, for all instances together. */
  limits: Pick<SignInLimits, 'take'>
  perAddressMax: number
}

const proofOf = (text: string): Buffer => createHash('sha256').update(text).digest()

export function createSignupGrants({ grantSignup, limits, perAddressMax }: SignupGrantsDeps): SignupGrants {
  /** Counts a grant in the transaction that creates the user, so that a failed sign-up does not count. */
  const isWithin = async (tx: Tx, who: 'agents' | 'people' | 'links', address: string) => {
    const budget = { name: `signup-grant:${who}:${addressKey(address)}`, max: perAddressMax }
    return (await limits.take([budget], tx)).length === 0
  }
  return {
    forAgent: async (tx, { userId, address }, now) =>
      (await isWithin(tx, 'agents', address)) ? grantSignup(tx, userId, now) : 0,

    async forPerson(tx, { userId, email, address }, now) {
      if (!(await isWithin(tx, 'people', address))) return 0
      const proof = proofOf(`mailbox:${mailboxOf(email)}`)
      return (await store.claimProof(tx, { proof, userId, now })) ? grantSignup(tx, userId, now) : 0
    },

    async forLink(tx, { userId, email, address }, now) {
      if (await store.hasSignupCredits(tx, userId)) return 0
      if (!(await isWithin(tx, 'links', address))) return 0
      const proof = proofOf(`agent-of:${mailboxOf(email)}`)
      return (await store.claimProof(tx, { proof, userId, now })) ? grantSignup(tx, userId, now) : 0
    },
  }
}
