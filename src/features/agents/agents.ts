import type { EventLog } from '#durable/event-log.ts'
import { type Owner, personOf, subjectOf } from '#engines/agent-links/owners.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import { mailName } from '#engines/person-mails/mail-text.ts'
import type { SignupGrants } from '#features/credits/signup-grants.ts'
import type { SignInLimits } from '#features/oauth/sign-in-limits.ts'
import type { PolicyFeature } from '#features/policy/policy.ts'
import type { Caller, RequestFacts } from '#kernel/caller.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { budgetSpent, Fault, notFound } from '#kernel/fault.ts'
import { assertFreshPerson } from '#kernel/fresh-person.ts'
import type { Random } from '#kernel/id.ts'
import { implement, type Operation, preparedAct } from '#kernel/operation.ts'
import type { NewEvent, Tx } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import { type AgentsInput, agentsMax, contract } from './contract.ts'
import { linkCodeHash, newLinkCode, readLinkCode } from './link-code.ts'
import { linkEvent } from './link-event.ts'
import * as store from './store.ts'

/** Agents with a key pair that a person links to the account, to decide for them. */

export type AgentsDeps = {
  db: Queryable
  clock: Clock
  random: Random
  events: Pick<EventLog, 'add' | 'notify'>
  /** How long an agent may end a new link by itself. */
  coolingMs: number
  /** Wrong codes, counted for all instances together. */
  limits: SignInLimits
  policy: Pick<PolicyFeature, 'endLink'>
  signups: Pick<SignupGrants, 'forLink'>
  mailQueue: MailQueue
  /** Where a person enters a code; undefined where no page is served. */
  linkPage: () => string | undefined
}

const codeMs = 10 * 60_000
const guessWindowSeconds = 15 * 60
const guessesMax = 10

const unknownCode = () =>
  new Fault(
    'not_found',
    'There is no such link code: it is good once, for 10 minutes. Let the agent get a new one by `agents_link_code`',
  )

const view = ({ agent_id, name, linked_at }: store.LinkedAgent) => ({
  agent_id,
  name,
  linked_at: linked_at.toISOString(),
})

type Person = Pick<Owner, 'userId' | 'agentId'>
type Link = { userId: string; person: Person; linkedAt: Date }

const linkedText = ({ agent_id, name }: store.LinkedAgent): string => {
  const shown = mailName(name ?? '')
  const agent = shown === '' ? agent_id : `“${shown}” (${agent_id})`
  return `The agent ${agent} was linked. It keeps its wallets and its key; you see them, and you decide about its limits, its recipients and its requests.`
}

type Prepared = { hash: Uint8Array; name: string | undefined }

/** Counts first and gives back later, so that parallel guesses are counted, too. */
async function prepareLink(
  { db, clock, limits }: AgentsDeps,
  { code: text, name }: AgentsInput<'link'>,
  caller: Caller,
): Promise<Prepared> {
  const now = clock.now()
  assertFreshPerson(caller, now)
  const budgets = [{ name: `link-code:${caller.userId}`, max: guessesMax }]
  if ((await limits.take(budgets)).length > 0)
    throw budgetSpent('rate_limited', 'Too many wrong link codes of this user; retry in 15 minutes', {
      budget: 'link_codes',
      owner: 'user',
      retryAfterSeconds: guessWindowSeconds,
    })
  const code = readLinkCode(text)
  const hash = code === undefined ? undefined : linkCodeHash(code)
  if (!hash || !(await store.isCode(db, hash, now))) throw unknownCode()
  await limits.giveBack(budgets)
  return { hash, name }
}

export function agents(deps: AgentsDeps): Operation[] {
  const { db, clock, random, events, coolingMs, policy, signups, mailQueue, linkPage } = deps

  const publish = async ({ tx, afterCommit }: RequestFacts, users: readonly string[], event: NewEvent) => {
    // In one order, since each locks the event log of its user.
    const ordered = [...users].sort()
    for (const userId of ordered) await events.add(tx!, userId, [event])
    afterCommit!(() => {
      for (const userId of ordered) events.notify(userId)
    })
  }

  /** The link that the caller may end; it throws where there is none, or where only the person may. */
  const endable = async (tx: Tx, agentId: string, caller: Caller): Promise<Link> => {
    const now = clock.now()
    if (agentId !== caller.agentId) {
      const { userId, linkedAt } = await subjectOf(tx, caller, agentId)
      assertFreshPerson(caller, now)
      return { userId, person: caller, linkedAt: linkedAt! }
    }
    const person = await personOf(tx, caller.userId)
    if (!person?.linkedAt) throw notFound('agent', 'agents_list')
    const { linkedAt } = person
    if (later(linkedAt, coolingMs) <= now)
      throw new Fault('step_up_required', 'Only the person of this agent ends a link of this age', {
        extras: { requires: 'person' },
      })
    return { userId: caller.userId, person, linkedAt }
  }

  return implement(contract, {
    async list(_input, { userId, scheme }) {
      const person = scheme === 'keypair' ? await personOf(db, userId) : undefined
      return {
        agents: (await store.agentsOf(db, userId)).map(view),
        max: agentsMax,
        linked_to: person?.linkedAt
          ? {
              agent_id: person.agentId,
              linked_at: person.linkedAt.toISOString(),
              unlink_until: later(person.linkedAt, coolingMs).toISOString(),
            }
          : null,
      }
    },

    async linkCode(_input, { userId, scheme }, { tx }) {
      if (scheme !== 'keypair')
        throw new Fault('conflict', 'A code is for an agent with a key pair, and this is a person', {
          extras: { reason: 'the caller signed in as a person' },
        })
      const handle = tx ?? db
      if (await personOf(handle, userId))
        throw new Fault('conflict', 'The agent is linked already; `agents_list` shows to whom', {
          extras: { reason: 'linked' },
        })
      const now = clock.now()
      const code = newLinkCode(random)
      const expiresAt = later(now, codeMs)
      await store.saveCode(handle, { userId, hash: linkCodeHash(code), now, expiresAt })
      const page = linkPage()
      const where =
        page === undefined
          ? `Enter the code ${code} within 10 minutes.`
          : `Open ${page} within 10 minutes, sign in, and enter the code ${code}.`
      return {
        code,
        expires_at: expiresAt.toISOString(),
        confirm_url: page ?? null,
        instructions: `${where} \`portico agents link --code ${code}\` after \`portico login\` does the same, and so does the operation \`agents_link\` in an app in which you have just signed in`,
      }
    },

    link: preparedAct(
      (input: AgentsInput<'link'>, caller) => prepareLink(deps, input, caller),
      async ({ hash, name }: Prepared, caller, request) => {
        const tx = request.tx!
        const now = clock.now()
        const userId = await store.claimCode(tx, hash, now)
        if (userId === undefined) throw unknownCode()
        await store.lockLinksOf(tx, caller.userId)
        const known = await store.agentsOf(tx, caller.userId)
        if (known.length >= agentsMax)
          throw new Fault('conflict', `A person has at most ${agentsMax} agents: unlink one first`, {
            extras: { reason: `${known.length} agents are linked` },
          })
        const added = await store.addLink(tx, { userId, personId: caller.userId, name, now })
        if (!added)
          throw new Fault('conflict', 'The agent is linked already', { extras: { reason: 'linked' } })
        const event = linkEvent('agent.linked', { agentId: added.agent_id, person: caller }, caller.agentId)
        const granted = await signups.forLink(
          tx,
          { userId, email: caller.person!.email, address: request.address },
          now,
        )
        await publish(request, [userId, caller.userId], event)
        await mailQueue.add(tx, caller.userId, 'agent_linked', { text: linkedText(added) })
        request.afterCommit!(mailQueue.wake)
        return { ...view(added), credits_granted: granted }
      },
    ),

    async unlink({ agent_id: agentId }, caller, request) {
      const tx = request.tx!
      const { userId, person, linkedAt } = await endable(tx, agentId, caller)
      // Of two that unlink at once the second finds none.
      if (!(await store.removeLink(tx, { userId, personId: person.userId, linkedAt })))
        throw notFound('agent', 'agents_list')
      await policy.endLink(tx, { userId, person })
      const event = linkEvent('agent.unlinked', { agentId, person }, caller.agentId)
      await publish(request, [userId, person.userId], event)
      return { agent_id: agentId, unlinked: true }
    },
  })
}
