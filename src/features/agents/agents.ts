import { later } from '#kernel/clock.ts'
import { type Caller, type RequestFacts, toActScope } from '#kernel/contract/caller.ts'
import { conflict, notFound } from '#kernel/contract/fault.ts'
import { implement, type Operation } from '#kernel/contract/operation.ts'
import { signedValues } from '#kernel/contract/signed-values.ts'
import { personOf } from '#store/person-of-user.ts'
import { type AgentsInput, agentsMax, contract } from './contract.ts'
import type { AgentsDeps } from './deps.ts'
import { agentView, createLink } from './link.ts'
import { linkCodeHash, newLinkCode } from './link-code.ts'
import { linkEvent, publish } from './link-event.ts'
import * as store from './store.ts'
import { createUnlink } from './unlink.ts'

const codeMs = 10 * 60_000

export const createAgents = (deps: AgentsDeps): Operation[] =>
  implement(contract, {
    list: (_input, caller) => listAgents(deps, caller),
    linkCode: (signed, caller, facts) => createLinkCode(deps, signed, caller, facts),
    link: createLink(deps),
    unlink: createUnlink(deps),
    contest: (input, caller, facts) => contest(deps, input, caller, facts),
  })

async function listAgents({ db, coolingMs }: AgentsDeps, { userId, scheme }: Caller) {
  const person = scheme === 'keypair' ? await personOf(db, userId) : undefined
  return {
    agents: (await store.agentsOf(db, userId)).map(agentView),
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
}

async function createLinkCode(
  { db, clock, random, linkPage, assertSigned }: AgentsDeps,
  signed: AgentsInput<'linkCode'>,
  caller: Caller,
  facts: RequestFacts,
) {
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
}

async function contest(
  deps: AgentsDeps,
  { on, ...signed }: AgentsInput<'contest'>,
  caller: Caller,
  facts: RequestFacts,
) {
  const { clock, mailQueue, assertSigned, policy } = deps
  assertKeyPair(caller)
  const scope = toActScope(facts)
  const { tx, afterCommit } = scope
  const says = signedValues(contract.entries.contest.signs, { on })
  await assertSigned({ ...facts, tx }, 'agents_contest', { caller, signed, says })
  const person = await personOf(tx, caller.userId, { lock: true })
  if (!person?.linkedAt) throw notFound('agent', 'agents_list')
  const at = on ? (person.contestedAt ?? clock.now()) : null
  const answer = { agent_id: caller.agentId, contested_at: at?.toISOString() ?? null }
  if (on === (person.contestedAt !== null)) return answer
  await store.setContested(tx, caller.userId, at)
  if (on) await policy.dropPending(tx, caller.userId)
  const type = on ? 'agent.link_contested' : 'agent.link_accepted'
  const event = linkEvent(type, { agentId: caller.agentId, person }, caller.agentId)
  await publish(deps, scope, [caller.userId, person.userId], { event })
  if (on && (await store.beginContestMail(tx, caller.userId, clock.now()))) {
    const text = `The holder of the key of the agent ${caller.agentId} contests its link to your account. You loosen nothing for it until the holder withdraws, and you can unlink it.`
    await mailQueue.add(tx, person.userId, 'link_contested', { text })
    afterCommit(mailQueue.wake)
  }
  return answer
}

function assertKeyPair({ scheme }: Caller): void {
  if (scheme !== 'keypair')
    throw conflict(
      'This is for an agent with a key pair, and this is a person',
      'the caller signed in as a person',
    )
}
