import { confirmedText, mailName } from '#engines/person-mails/mail-text.ts'
import {
  type ActScope,
  actorOf,
  type Caller,
  type RequestFacts,
  toActScope,
} from '#kernel/contract/caller.ts'
import { budgetSpent, conflict, Fault, notFound } from '#kernel/contract/fault.ts'
import { confirmedAct, preparedAct } from '#kernel/contract/operation.ts'
import { approvalDetail } from '#kernel/task/approval.ts'
import type { Tx } from '#kernel/task/task.ts'
import { personOf } from '#store/person-of-user.ts'
import { type AgentsInput, agentsMax } from './contract.ts'
import type { AgentsDeps } from './deps.ts'
import { linkCodeHash, readLinkCode } from './link-code.ts'
import { linkEvent, publish } from './link-event.ts'
import * as store from './store.ts'

const guessWindowSeconds = 15 * 60
const guessesMax = 10

/** A link request spends the link code; the person then confirms the agent that showed the code. */
export const createLink = (deps: AgentsDeps) =>
  confirmedAct(
    preparedAct(
      (input: AgentsInput<'link'>, caller) => prepareLink(deps, input, caller),
      (prepared, caller: Caller, facts: RequestFacts) => requestLink(deps, prepared, caller, facts),
    ),
    async (input, person) => (scope) => link(deps, input as LinkInput, person, scope),
  )

async function assertRoom(tx: Tx, personId: string): Promise<void> {
  await store.lockLinksOf(tx, personId)
  const known = await store.agentsOf(tx, personId)
  if (known.length >= agentsMax)
    throw conflict(
      `A person has at most ${agentsMax} agents: unlink one first`,
      `${known.length} agents are linked`,
    )
}

async function requestLink(
  { clock, acts }: AgentsDeps,
  { hash, name }: PreparedLink,
  caller: Caller,
  facts: RequestFacts,
) {
  const scope = toActScope(facts)
  const { tx } = scope
  const agent = await store.claimCode(tx, hash, clock.now())
  if (!agent) throw unknownCode()
  await assertRoom(tx, caller.userId)
  if (await personOf(tx, agent.user_id)) throw linkedAlready()
  const act = {
    operation: 'agents_link',
    // The network address is stored because the first credits of the agent count against it.
    input: {
      agent_id: agent.agent_id,
      ...(name !== undefined && { name }),
      address: facts.address,
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

async function link(
  deps: AgentsDeps,
  { agent_id: agentId, name, address, code_at: codeAt }: LinkInput,
  person: Caller,
  scope: ActScope,
) {
  const { clock, signups, mailQueue } = deps
  const { tx, afterCommit } = scope
  const now = clock.now()
  await assertRoom(tx, person.userId)
  const userId = await store.keyPairUserOf(tx, agentId)
  if (userId === undefined) throw notFound('agent', 'agents_list')
  if (codeAt !== undefined && (await store.hasNewerCode(tx, userId, codeAt)))
    throw conflict(
      'A newer code has replaced this one: enter the newest code of the agent',
      'a newer code replaces the one that was entered',
    )
  const added = await store.addLink(tx, { userId, personId: person.userId, name, now })
  if (!added) throw linkedAlready()
  const owner = { userId, email: person.person!.email, address }
  const granted = await signups.forLink(tx, owner, now)
  const event = linkEvent('agent.linked', { agentId, person }, actorOf(person))
  await publish(deps, scope, [userId, person.userId], { event })
  const text = linkedText(added) + confirmedText(person)
  await mailQueue.add(tx, person.userId, 'agent_linked', { text })
  afterCommit(mailQueue.wake)
  return { ...agentView(added), credits_granted: granted }
}

const unknownCode = () =>
  new Fault(
    'not_found',
    'There is no such link code: it is good once, for 10 minutes. Let the agent get a new one by `agents_link_code`',
  )

export const agentView = ({ agent_id, name, linked_at }: store.LinkedAgent) => ({
  agent_id,
  name,
  linked_at: linked_at.toISOString(),
})

const linkedText = ({ agent_id, name }: store.LinkedAgent): string => {
  const shown = mailName(name ?? '')
  const agent = shown === '' ? agent_id : `“${shown}” (${agent_id})`
  return `The agent ${agent} was linked. It keeps its wallets and its key; you see them, and you decide about its limits, its recipients and its requests.`
}

/**
 * An attempt counts before its code is checked, so that parallel guesses count too. The attempt does not count any more
 * if the code is right.
 */
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

type LinkInput = { agent_id: string; name?: string; address: string; code_at?: string }
