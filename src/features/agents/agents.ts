import type { EventLog } from '#durable/events/event-log.ts'
import { linkCoolsUntil, type Owner, personOf, subjectOf } from '#engines/agent-links/owners.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import { confirmedText, mailName } from '#engines/person-mails/mail-text.ts'
import type { AssertSigned } from '#features/auth/signed-act.ts'
import type { SignupGrants } from '#features/credits/signup-grants.ts'
import type { SignInLimits } from '#features/oauth/sign-in-limits.ts'
import type { PolicyFeature } from '#features/policy/policy.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { type ActScope, actOf, actorOf, type Caller, type RequestFacts } from '#kernel/contract/caller.ts'
import { budgetSpent, conflict, Fault, notFound } from '#kernel/contract/fault.ts'
import { confirmedAct, implement, type Operation, preparedAct } from '#kernel/contract/operation.ts'
import type { Random } from '#kernel/id.ts'
import type { ActRequests } from '#kernel/task/act-request.ts'
import { approvalDetail } from '#kernel/task/approval.ts'
import type { NewEvent, Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Queryable } from '#store/query.ts'
import { type AgentsInput, agentsMax, contract } from './contract.ts'
import { linkCodeHash, newLinkCode, readLinkCode } from './link-code.ts'
import { linkEvent } from './link-event.ts'
import * as store from './store.ts'

export type AgentsDeps = {
  db: Queryable
  clock: Clock
  random: Random
  events: Pick<EventLog, 'add' | 'notify'>
  /** How long an agent may end a new link without its person. */
  coolingMs: number
  limits: SignInLimits
  policy: Pick<PolicyFeature, 'endLink' | 'dropPending'>
  acts: ActRequests
  /** Throws unless the key of the calling agent has just signed the act. */
  assertSigned: AssertSigned
  signups: Pick<SignupGrants, 'forLink'>
  mailQueue: MailQueue
  /** It is undefined if no page is served. */
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
type Link = { userId: string; agentId: string; person: Person; linkedAt: Date; contestedAt: Date | null }

const linkedText = ({ agent_id, name }: store.LinkedAgent): string => {
  const shown = mailName(name ?? '')
  const agent = shown === '' ? agent_id : `“${shown}” (${agent_id})`
  return `The agent ${agent} was linked. It keeps its wallets and its key; you see them, and you decide about its limits, its recipients and its requests.`
}

/** The guess is counted before the check and given back after it, so that parallel guesses count too. */
async function prepareLink(
  { db, clock, limits }: AgentsDeps,
  { code: text, name }: AgentsInput<'link'>,
  caller: Caller,
): Promise<PreparedLink> {
  if (!caller.person) throw forPeople()
  const budgets = [{ name: `link-code:${caller.userId}`, max: guessesMax }]
  if ((await limits.take(budgets)).length > 0)
    throw budgetSpent('rate_limited', 'Too many wrong link codes of this user; retry in 15 minutes', {
      budget: 'link_codes',
      owner: 'user',
      retryAfterSeconds: guessWindowSeconds,
    })
  const code = readLinkCode(text)
  const hash = code === undefined ? undefined : linkCodeHash(code)
  if (!hash || !(await store.isCode(db, hash, clock.now()))) throw unknownCode()
  await limits.giveBack(budgets)
  return { hash, name }
}
type PreparedLink = { hash: Uint8Array; name: string | undefined }

const forPeople = (): Fault =>
  new Fault('step_up_required', 'Only a person links an agent, in an app or on the page of the account', {
    extras: { requires: 'person' },
  })
const linkedAlready = (): Fault => conflict('The agent is linked already', 'linked')

/** Every caller adds to the logs in the same order, because each addition locks the event log of its user. */
async function publish(
  { events }: Pick<AgentsDeps, 'events'>,
  { tx, afterCommit }: ActScope,
  users: readonly string[],
  event: NewEvent,
): Promise<void> {
  const ordered = [...users].sort()
  for (const userId of ordered) await events.add(tx, userId, [event])
  afterCommit(() => {
    for (const userId of ordered) events.notify(userId)
  })
}

type LinkInput = { agent_id: string; name?: string; address: string; code_at?: string }

/** The request spends the code; the person then confirms the agent that showed it. */
function createLink(deps: AgentsDeps) {
  const { clock, acts, signups, mailQueue } = deps
  const assertRoom = async (tx: Tx, personId: string): Promise<void> => {
    await store.lockLinksOf(tx, personId)
    const known = await store.agentsOf(tx, personId)
    if (known.length >= agentsMax)
      throw conflict(
        `A person has at most ${agentsMax} agents: unlink one first`,
        `${known.length} agents are linked`,
      )
  }

  const request = async ({ hash, name }: PreparedLink, caller: Caller, facts: RequestFacts) => {
    const { address } = facts
    const scope = actOf(facts)
    const { tx } = scope
    const agent = await store.claimCode(tx, hash, clock.now())
    if (!agent) throw unknownCode()
    await assertRoom(tx, caller.userId)
    if (await personOf(tx, agent.user_id)) throw linkedAlready()
    const act = {
      operation: 'agents_link',
      // The address is stored because the first credits of the agent count against it.
      input: {
        agent_id: agent.agent_id,
        ...(name !== undefined && { name }),
        address,
        code_at: agent.code_at.toISOString(),
      },
      text: `Link the agent ${agent.agent_id} to your account`,
      details: [
        approvalDetail('Agent', agent.agent_id),
        approvalDetail('Called', name ?? agent.name ?? 'without a name'),
      ],
    }
    return acts.requestAct(scope, act, caller)
  }

  const apply = async (input: JsonObject, person: Caller) => async (scope: ActScope) => {
    const { tx, afterCommit } = scope
    const { agent_id: agentId, name, address, code_at: codeAt } = input as LinkInput
    const now = clock.now()
    await assertRoom(tx, person.userId)
    const userId = await store.keyPairUserOf(tx, agentId)
    if (userId === undefined) throw notFound('agent', 'agents_list')
    if (codeAt !== undefined && (await store.hasNewerCode(tx, userId, codeAt)))
      throw conflict(
        'The agent has asked for another code since: link it by that one',
        'a newer code replaces the one that was entered',
      )
    const added = await store.addLink(tx, { userId, personId: person.userId, name, now })
    if (!added) throw linkedAlready()
    const owner = { userId, email: person.person!.email, address }
    const granted = await signups.forLink(tx, owner, now)
    const event = linkEvent('agent.linked', { agentId, person }, actorOf(person))
    await publish(deps, scope, [userId, person.userId], event)
    const text = linkedText(added) + confirmedText(person)
    await mailQueue.add(tx, person.userId, 'agent_linked', { text })
    afterCommit(mailQueue.wake)
    return { ...view(added), credits_granted: granted }
  }

  return confirmedAct(
    preparedAct((input: AgentsInput<'link'>, caller) => prepareLink(deps, input, caller), request),
    apply,
  )
}

/** The agent itself can end a young link; the person can end any, after a confirmation. */
function createUnlink(deps: AgentsDeps) {
  const { clock, coolingMs, policy, acts } = deps
  const end = async (
    scope: ActScope,
    { userId, agentId, person, linkedAt, contestedAt }: Link,
    by: string,
  ) => {
    const { tx } = scope
    const ended = await store.removeLink(tx, { userId, personId: person.userId, linkedAt })
    if (!ended) throw notFound('agent', 'agents_list')
    // A stolen token of the agent must not lift what its person has set, unless the key's holder contests the link.
    const lifts =
      by === agentId
        ? contestedAt !== null
        : linkCoolsUntil(linkedAt, { now: clock.now(), coolingMs }) !== undefined
    await policy.endLink(tx, { userId, person, linkedAt, isUndone: lifts, ...ended })
    await publish(deps, scope, [userId, person.userId], linkEvent('agent.unlinked', { agentId, person }, by))
    return { agent_id: agentId, unlinked: true }
  }
  const linkOf = async (tx: Tx, person: Caller, agentId: string): Promise<Link> => {
    const { userId, linkedAt, contestedAt } = await subjectOf(tx, person, agentId)
    if (!linkedAt) throw notFound('agent', 'agents_list')
    return { userId, agentId, person, linkedAt, contestedAt }
  }

  const run = async ({ agent_id: agentId }: AgentsInput<'unlink'>, caller: Caller, facts: RequestFacts) => {
    const scope = actOf(facts)
    const { tx } = scope
    if (agentId === caller.agentId) {
      const person = await personOf(tx, caller.userId)
      if (!person?.linkedAt) throw notFound('agent', 'agents_list')
      const { linkedAt, contestedAt } = person
      if (later(linkedAt, coolingMs) <= clock.now())
        throw new Fault(
          'step_up_required',
          'Only the person of this agent ends a link of this age; the holder of the key contests it by `agents_contest`',
          { extras: { requires: 'person' } },
        )
      return end(scope, { userId: caller.userId, agentId, person, linkedAt, contestedAt }, caller.agentId)
    }
    const { linkedAt } = await linkOf(tx, caller, agentId)
    const act = {
      operation: 'agents_unlink',
      input: { agent_id: agentId, linked_at: linkedAt.toISOString() },
      text: `Unlink the agent ${agentId} from your account`,
      details: [approvalDetail('Agent', agentId)],
    }
    return acts.requestAct(scope, act, caller)
  }
  const apply = async (input: JsonObject, person: Caller) => async (scope: ActScope) => {
    const { agent_id: agentId, linked_at: linkedAt } = input as { agent_id: string; linked_at?: string }
    const link = await linkOf(scope.tx, person, agentId)
    if (linkedAt !== undefined && link.linkedAt.toISOString() !== linkedAt)
      throw conflict(
        'The agent was linked again since its end was asked for: ask for it again',
        'it is another link',
      )
    return end(scope, link, actorOf(person))
  }
  return confirmedAct(run, apply)
}

export function createAgents(deps: AgentsDeps): Operation[] {
  const { db, clock, random, coolingMs, mailQueue, linkPage, assertSigned, policy } = deps

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
              contested_at: person.contestedAt?.toISOString() ?? null,
            }
          : null,
      }
    },

    async linkCode(signed, caller, facts) {
      assertKeyPair(caller)
      const { userId } = caller
      const tx = facts.tx ?? db
      await assertSigned({ ...facts, tx }, 'agents_link_code', { caller, signed })
      if (await personOf(tx, userId))
        throw conflict('The agent is linked already; `agents_list` shows to whom', 'linked')
      const now = clock.now()
      const code = newLinkCode(random)
      const expiresAt = later(now, codeMs)
      await store.saveCode(tx, { userId, hash: linkCodeHash(code), now, expiresAt })
      const page = linkPage()
      const where =
        page === undefined
          ? `Enter the code ${code} within 10 minutes.`
          : `Open ${page} within 10 minutes, sign in, and enter the code ${code}.`
      return {
        code,
        expires_at: expiresAt.toISOString(),
        confirm_url: page ?? null,
        instructions: `${where} \`portico agents link --code ${code}\` after \`portico login\` does the same, and so does the operation \`agents_link\` in an app that may propose; the person confirms it on the page that they name`,
      }
    },

    link: createLink(deps),
    unlink: createUnlink(deps),

    async contest({ on, ...signed }, caller, facts) {
      assertKeyPair(caller)
      const scope = actOf(facts)
      const { tx, afterCommit } = scope
      await assertSigned({ ...facts, tx }, 'agents_contest', { caller, signed, says: String(on) })
      const person = await personOf(tx, caller.userId, { lock: true })
      if (!person?.linkedAt) throw notFound('agent', 'agents_list')
      const at = on ? (person.contestedAt ?? clock.now()) : null
      const answer = { agent_id: caller.agentId, contested_at: at?.toISOString() ?? null }
      if (on === (person.contestedAt !== null)) return answer
      await store.setContested(tx, caller.userId, at)
      if (on) await policy.dropPending(tx, caller.userId)
      const type = on ? 'agent.link_contested' : 'agent.link_accepted'
      const event = linkEvent(type, { agentId: caller.agentId, person }, caller.agentId)
      await publish(deps, scope, [caller.userId, person.userId], event)
      if (on && (await store.beginContestMail(tx, caller.userId, clock.now()))) {
        const text = `The holder of the key of the agent ${caller.agentId} contests its link to your account. You loosen nothing for it until the holder withdraws, and you can unlink it.`
        await mailQueue.add(tx, person.userId, 'link_contested', { text })
        afterCommit(mailQueue.wake)
      }
      return answer
    },
  })
}

function assertKeyPair({ scheme }: Caller): void {
  if (scheme !== 'keypair')
    throw conflict(
      'This is for an agent with a key pair, and this is a person',
      'the caller signed in as a person',
    )
}
