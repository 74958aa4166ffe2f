import type { EventLog } from '#durable/event-log.ts'
import { subjectOf } from '#engines/agent-links/owners.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import type { Wallet } from '#features/wallets/store.ts'
import type { Caller } from '#kernel/caller.ts'
import { type Chain, sameAddress } from '#kernel/chains.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault, invalid, notFound } from '#kernel/fault.ts'
import { assertFreshPerson } from '#kernel/fresh-person.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import { implement, type Operation, preparedAct } from '#kernel/operation.ts'
import type { Tx } from '#kernel/task.ts'
import { chainByRef } from '#kernel/token-ref.ts'
import type { Queryable } from '#store/query.ts'
import { recipientsContract } from './contract.ts'
import { recipientText } from './person-mail-texts.ts'
import * as store from './recipient-store.ts'
import { type RecipientInput, recipientsMax } from './recipients-contract.ts'
import { lockPolicy } from './store.ts'

/** Addresses of others that a user may send to: a person adds them, and each waits before it counts. */

export type RecipientsDeps = {
  db: Queryable
  clock: Clock
  random: Random
  events: Pick<EventLog, 'add' | 'notify'>
  coolingMs: number
  walletsOf: (db: Queryable, userId: string) => Promise<Wallet[]>
  /** Chains on which wallets can send. */
  chains: readonly Chain[]
  addresses: RecipientAddresses
  mailQueue: MailQueue
}
export type RecipientAddresses = {
  /** The text in its one spelling, with its checksum; undefined where it is none. */
  parse(chain: Pick<Chain, 'family'>, text: string): string | undefined
  /** Why the gateway's own contracts, accounts and listed tokens receive nothing; undefined for any other address. */
  reservedFor(chain: Chain, address: string): string | undefined
  /** Asks the chain why the address cannot receive. */
  problemOf(chain: Chain, address: string, sender: string): Promise<string | undefined>
}

const spelling = {
  evm: 'Input should be an address of 0x and 40 hex digits, spelled with its checksum in upper and lower case',
  solana: 'Input should be the address of a wallet on Solana',
} as const

type Prepared = { chain: Chain; address: string; input: RecipientInput }

async function prepare(deps: RecipientsDeps, input: RecipientInput, caller: Caller): Promise<Prepared> {
  assertFreshPerson(caller, deps.clock.now())
  const { addresses, db } = deps
  const { userId } = await subjectOf(db, caller, input.for_agent)
  const chain = chainByRef(deps.chains, input.chain_id, 'chain_id')
  const refuse = (sentence: string) => invalid('address', 'invalid_recipient', sentence)
  const address = addresses.parse(chain, input.address)
  if (address === undefined) throw refuse(spelling[chain.family])
  const wallets = await deps.walletsOf(db, userId)
  if (wallets.some((own) => sameAddress(chain, own.address, address)))
    throw refuse('Input should be an address of somebody else: this is your own wallet')
  const reserved = addresses.reservedFor(chain, address)
  if (reserved) throw refuse(`Input should be the address of a wallet: this is ${reserved}`)
  const sender = wallets.find(({ kind }) => kind === (chain.family === 'evm' ? 'evm' : 'svm'))
  if (!sender) throw new Fault('unavailable', 'The wallets are still being made; try again')
  const problem = await addresses.problemOf(chain, address, sender.address)
  if (problem) throw refuse(`Input should be an address that can receive: ${problem}`)
  return { chain, address, input }
}

async function add(deps: RecipientsDeps, { chain, address, input }: Prepared, caller: Caller, tx: Tx) {
  const { clock, events, coolingMs, random } = deps
  const now = clock.now()
  const subject = await subjectOf(tx, caller, input.for_agent, { lock: true })
  const { userId } = subject
  await lockPolicy(tx, userId, now)
  const known = await store.recipientsOf(tx, userId)
  // Nobody but the agent itself sends from its wallets.
  const { label, agents = userId === caller.userId ? 'denied' : 'allowed' } = input
  const existing = known.find((each) => each.chain_id === chain.id && each.address === address)
  if (existing?.label === label && existing.agents === agents) return { userId, answer: view(existing, now) }
  if (existing)
    throw new Fault('conflict', 'The address is a recipient already: remove it before you add it otherwise', {
      extras: { reason: `recipient ${existing.recipient_id} has this address` },
    })
  if (known.length >= recipientsMax)
    throw new Fault('conflict', `A user has at most ${recipientsMax} recipients: remove one first`, {
      extras: { reason: `${known.length} recipients exist` },
    })
  const row: store.RecipientRow = {
    recipient_id: uuidv7(now, random),
    user_id: userId,
    chain_id: chain.id,
    address,
    label,
    agents,
    added_by: caller.agentId,
    created_at: now,
    effective_at: later(now, coolingMs),
  }
  await store.insertRecipient(tx, row)
  await events.add(tx, userId, [changedEvent(row, caller.agentId, 'recipient_added')])
  const text = recipientText(subject, { ...row, chain: chain.displayName })
  await deps.mailQueue.add(tx, caller.userId, 'recipient_added', { text, effectiveAt: row.effective_at })
  return { userId, answer: view(row, now) }
}

const view = (row: store.RecipientRow, now: Date) => ({
  recipient_id: row.recipient_id,
  chain_id: row.chain_id,
  address: row.address,
  label: row.label,
  agents: row.agents,
  status: row.effective_at <= now ? ('effective' as const) : ('pending' as const),
  created_at: row.created_at.toISOString(),
  effective_at: row.effective_at.toISOString(),
})

const changedEvent = (
  { recipient_id, address, chain_id, label, effective_at, user_id }: store.RecipientRow,
  by: string,
  cause: 'recipient_added' | 'recipient_removed',
) => ({
  type: 'policy.changed',
  subject: { kind: 'policy', id: user_id },
  data: {
    cause,
    fields: [],
    effective_at: cause === 'recipient_added' ? effective_at.toISOString() : null,
    by,
    recipient: { recipient_id, chain_id, address, label },
  },
})

export function recipients(deps: RecipientsDeps): Operation[] {
  const { db, clock, events } = deps
  return implement(recipientsContract, {
    async list({ for_agent }, caller) {
      const now = clock.now()
      const { userId } = await subjectOf(db, caller, for_agent)
      const rows = await store.recipientsOf(db, userId)
      return { recipients: rows.map((row) => view(row, now)), max: recipientsMax }
    },
    add: preparedAct(
      (input: RecipientInput, caller) => prepare(deps, input, caller),
      async (prepared, caller, { tx, afterCommit }) => {
        const { userId, answer } = await add(deps, prepared, caller, tx!)
        afterCommit!(() => events.notify(userId))
        afterCommit!(deps.mailQueue.wake)
        return answer
      },
    ),
    async remove({ recipient_id: id, for_agent }, caller, { tx, afterCommit }) {
      const { userId } = await subjectOf(tx!, caller, for_agent, { lock: true })
      await lockPolicy(tx!, userId, clock.now())
      const row = await store.deleteRecipient(tx!, userId, id)
      if (!row) throw notFound('recipient', 'recipients_list')
      await store.raiseVersion(tx!, userId)
      await events.add(tx!, userId, [changedEvent(row, caller.agentId, 'recipient_removed')])
      afterCommit!(() => events.notify(userId))
      return { recipient_id: id, removed: true }
    },
  })
}
