import type { EventLog } from '#durable/events/event-log.ts'
import { assertUncontested, type Subject, subjectOf } from '#engines/agent-links/owners.ts'
import type { Wallet } from '#engines/custody/wallet-store.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import { confirmedText } from '#engines/person-mails/mail-text.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { type ActScope, actorOf, type Caller, toActScope } from '#kernel/contract/caller.ts'
import { conflict, Fault, invalid, notFound } from '#kernel/contract/fault.ts'
import { confirmedAct, implement, type Operation, preparedAct } from '#kernel/contract/operation.ts'
import { chainByRef } from '#kernel/contract/token-ref.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import { type Chain, sameAddress } from '#kernel/money/chains.ts'
import type { ActRequests } from '#kernel/task/act-approval-request.ts'
import { approvalDetail } from '#kernel/task/approval.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import { recipientsContract } from './contract.ts'
import { agentTexts, recipientText, whose } from './person-mail-texts.ts'
import * as store from './recipient-store.ts'
import { type RecipientInput, recipientsMax } from './recipients-contract.ts'
import type { AgentsRule } from './rules.ts'
import { lockPolicy } from './store.ts'

/**
 * A recipient is an address of somebody else that a user may send to. A person adds it, and it takes effect after a
 * waiting time.
 */

export type RecipientsDeps = {
  db: Queryable
  clock: Clock
  random: Random
  events: Pick<EventLog, 'add' | 'notify'>
  coolingMs: number
  walletsOf: (db: Queryable, userId: string) => Promise<Wallet[]>
  /** The chains on which wallets can send. */
  chains: readonly Chain[]
  addresses: RecipientAddresses
  mailQueue: MailQueue
  acts: ActRequests
}
export type RecipientAddresses = {
  /** Returns the address in its one spelling, with its checksum; undefined if the text is no address. */
  parse(chain: Pick<Chain, 'family'>, text: string): string | undefined
  /**
   * Returns what the address is if it must not be a recipient, such as a contract of the gateway or a token; undefined
   * for any other address.
   */
  reservedFor(chain: Chain, address: string): string | undefined
  /** Returns why the address cannot receive, as the chain shows; undefined if it can. */
  problemOf(chain: Chain, address: string, sender: string): Promise<string | undefined>
}

const spelling = {
  evm: 'Input should be an address of 0x and 40 hex digits, spelled with its checksum in upper and lower case',
  solana: 'Input should be the address of a wallet on Solana',
} as const

type Prepared = { chain: Chain; address: string; input: RecipientInput }

async function prepare(deps: RecipientsDeps, input: RecipientInput, caller: Caller): Promise<Prepared> {
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

type Wanted = { subject: Subject; known: store.RecipientRow | undefined; agents: AgentsRule }
/** Finds the agent and recipient of a request, under the lock of limits; throws if the address cannot be added. */
async function findWanted(
  { clock }: Pick<RecipientsDeps, 'clock'>,
  tx: Tx,
  { chain, address, input }: Prepared,
  caller: Caller,
): Promise<Wanted> {
  const subject = await subjectOf(tx, caller, input.for_agent, { lock: true })
  const { userId } = subject
  await lockPolicy(tx, userId, clock.now())
  const rows = await store.recipientsOf(tx, userId)
  // Only an agent sends from its own wallets, so a recipient for a linked agent allows agents by default.
  const { label, agents = subject.linkedAt === null ? 'denied' : 'allowed' } = input
  const known = rows.find((each) => each.chain_id === chain.id && each.address === address)
  if (known && (known.label !== label || known.agents !== agents))
    throw conflict(
      'The address is a recipient already: remove it before you add it with another label or agents setting',
      `recipient ${known.recipient_id} has this address`,
    )
  if (!known && rows.length >= recipientsMax)
    throw conflict(
      `A user has at most ${recipientsMax} recipients: remove one first`,
      `${rows.length} recipients exist`,
    )
  return { subject, known, agents }
}

async function add(deps: RecipientsDeps, prepared: Prepared, person: Caller, { tx, afterCommit }: ActScope) {
  const { clock, events, coolingMs, random } = deps
  const { chain, address, input } = prepared
  const now = clock.now()
  const { subject, known, agents } = await findWanted(deps, tx, prepared, person)
  assertUncontested(subject.contestedAt)
  if (known) return view(known, now)
  const row: store.RecipientRow = {
    recipient_id: uuidv7(now, random),
    user_id: subject.userId,
    chain_id: chain.id,
    address,
    label: input.label,
    agents,
    added_by: person.agentId,
    created_at: now,
    effective_at: later(now, coolingMs),
  }
  await store.insertRecipient(tx, row)
  await events.add(tx, row.user_id, [changedEvent(row, actorOf(person), 'recipient_added')])
  if (person.person) {
    const text = recipientText(subject, { ...row, chain: chain.displayName }) + confirmedText(person)
    await deps.mailQueue.add(tx, person.userId, 'recipient_added', { text, effectiveAt: row.effective_at })
    afterCommit(deps.mailQueue.wake)
  }
  afterCommit(() => events.notify(row.user_id))
  return view(row, now)
}

/** Requests the person's approval of the recipient; the page of the approval shows the address in full. */
async function request(deps: RecipientsDeps, prepared: Prepared, caller: Caller, scope: ActScope) {
  const { clock, acts, coolingMs } = deps
  const { chain, address, input } = prepared
  const { subject, known, agents } = await findWanted(deps, scope.tx, prepared, caller)
  if (known) return view(known, clock.now())
  const { agentId } = subject
  const { label } = input
  const act = {
    operation: 'recipients_add',
    input: { for_agent: agentId, chain_id: chain.id, address, label, agents },
    text: `Add a recipient to ${whose(subject, caller)}: ${address}`,
    details: [
      approvalDetail('Address', address),
      approvalDetail('Chain', chain.displayName),
      approvalDetail('Called', label),
      approvalDetail('Who sends', agentTexts[agents]),
      approvalDetail('Counts', `${durationText(coolingMs)} after you confirm it`),
    ],
  }
  return acts.requestAct(scope, act, caller)
}

/** Names the duration exactly, in the largest unit that divides it. */
const durationText = (ms: number): string => {
  const [unit, unitMs] = units.find(([, each]) => ms % each === 0) ?? units.at(-1)!
  const count = ms / unitMs
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
const units = [
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

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

export function createRecipients(deps: RecipientsDeps): Operation[] {
  const { db, clock, events } = deps
  return implement(recipientsContract, {
    async list({ for_agent }, caller) {
      const now = clock.now()
      const { userId } = await subjectOf(db, caller, for_agent)
      const rows = await store.recipientsOf(db, userId)
      return { recipients: rows.map((row) => view(row, now)), max: recipientsMax }
    },
    add: confirmedAct(
      preparedAct(
        (input: RecipientInput, caller) => prepare(deps, input, caller),
        (prepared, caller, facts) => request(deps, prepared, caller, toActScope(facts)),
      ),
      async (input, person) => {
        const prepared = await prepare(deps, input as RecipientInput, person)
        return (scope) => add(deps, prepared, person, scope)
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
