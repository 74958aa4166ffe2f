/** The steps of people: they link an agent, decide for it, and confirm what allows more. */
import assert from 'node:assert/strict'
import { signedAct } from '../../harness/gateway.ts'
import type { Step } from './door-step.ts'
import type { Authorization } from './twins.ts'

type Json = Record<string, unknown>

const ofPeople = (steps: readonly Step[]): Step[] => steps.map((step) => ({ ...step, only: 'a person' }))
export const recipient = { chain_id: '8453', address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' }
const adding: Step = {
  name: 'recipients_add',
  input: { ...recipient, label: 'Cold wallet', agents: 'allowed' },
}

/** What the page of approvals does for the person, and the end of the task. */
const confirming = (act: Step, keep: Step['keep'] = () => {}): Step[] => [
  {
    ...act,
    keep(result, known) {
      const { approval, confirmation, task_id } = result as {
        approval?: Json
        confirmation?: Json
        task_id?: string
      }
      const waiting = confirmation ?? approval
      assert.ok(waiting, JSON.stringify(result))
      Object.assign(known, { approval_id: waiting.approval_id, act_id: confirmation?.task_id ?? task_id })
    },
  },
  {
    name: 'approvals_approve',
    authorization: async ({ user }) => `Bearer ${await user.pageToken()}`,
    input: ({ approval_id }) => ({ approval_id }),
  },
  {
    name: 'tasks_get',
    input: ({ act_id }) => ({ task_id: act_id }),
    until: ({ status }) => status === 'completed' || status === 'failed',
    keep({ status, error, result }, known) {
      assert.deepEqual([status, error], ['completed', null])
      keep(result as Json, known)
    },
  },
]

/** By the key pair that the journey has registered. */
const asAgent: Authorization = ({ known }) => `Bearer ${known.token}`
/** Later than the signature before, which is good once. */
const signedBy =
  (act: Parameters<typeof signedAct>[1]) =>
  ({ key, agent_id }: Json): Json => {
    const { privateKey } = key as Pick<Parameters<typeof signedAct>[0], 'privateKey'>
    return signedAct({ agentId: String(agent_id), privateKey }, act, nextMs++)
  }
let nextMs = 0
const forAgent = ({ agent_id }: Json): Json => ({ for_agent: agent_id })

export const linking: Step[] = ofPeople([
  {
    name: 'agents_link_code',
    authorization: asAgent,
    input: signedBy('agents_link_code'),
    keep: ({ code }, known) => Object.assign(known, { code }),
  },
  ...confirming({ name: 'agents_link', input: ({ code }) => ({ code, name: 'Twin' }) }),
  {
    name: 'agents_contest',
    authorization: asAgent,
    input: (known) => ({ on: true, ...signedBy('agents_contest:true')(known) }),
  },
  {
    name: 'agents_contest',
    authorization: asAgent,
    input: (known) => ({ on: false, ...signedBy('agents_contest:false')(known) }),
  },
  ...confirming(adding),
])

/** The agent asks, the person sees it and decides. */
const decided = (amount_usdc: string, decision: string): Step[] => [
  {
    name: 'earn_deposit',
    authorization: asAgent,
    input: { amount_usdc },
    keep: ({ status }) => assert.equal(status, 'pending'),
  },
  {
    name: 'approvals_list',
    keep: ({ approvals }, known) => {
      const { length, 0: first } = approvals as Json[]
      assert.equal(length, 1)
      known.approval_id = first?.approval_id
    },
  },
  {
    name: decision,
    authorization: async ({ user }) => `Bearer ${await user.pageToken()}`,
    input: ({ approval_id }) => ({ approval_id }),
  },
]

export const deciding: Step[] = ofPeople([
  {
    name: 'recipients_list',
    // The recipient is younger than the link, which then counts, too.
    until: ({ recipients }) => (recipients as Json[])[0]?.status === 'effective',
  },
  { name: 'agents_list' },
  { name: 'policy_show', input: forAgent },
  { name: 'recipients_list', input: forAgent },
  { name: 'wallets_list', input: forAgent },
  { name: 'wallets_holdings', input: forAgent },
  {
    name: 'tasks_list',
    input: forAgent,
    keep: ({ items }, known) => {
      known.grant_id = (items as Json[])[0]?.task_id
    },
  },
  { name: 'tasks_get', input: (known) => ({ ...forAgent(known), task_id: known.grant_id }) },
  { name: 'policy_tighten', input: (known) => ({ ...forAgent(known), approval_above_usd: '0' }) },
  { name: 'policy_kill', input: (known) => ({ ...forAgent(known), on: false }) },
  ...decided('2', 'approvals_approve'),
  ...decided('3', 'approvals_decline'),
  ...confirming({ name: 'policy_tighten', input: { per_day_usd: '60000' } }, ({ pending_changes }, known) => {
    known.change_id = (pending_changes as Json[])[0]?.change_id
  }),
  { name: 'policy_cancel_change', input: ({ change_id }) => ({ change_id }) },
  ...confirming({ name: 'agents_unlink', input: ({ agent_id }) => ({ agent_id }) }),
])

export const transferring: Step[] = [
  {
    name: 'recipients_list',
    keep: ({ recipients }, known) => {
      known.recipient_id = (recipients as Json[])[0]?.recipient_id
    },
  },
  { ...adding, fault: { 'a key pair': 'step_up_required' } },
  {
    name: 'wallets_transfer',
    input: {
      chain_id: recipient.chain_id,
      token: 'USDC',
      amount: '1000000',
      recipient: recipient.address,
      wait: true,
      timeout: 60,
    },
    keep: ({ status, error }) => assert.deepEqual([status, error], ['completed', null]),
    fault: { 'a key pair': 'policy_denied' },
  },
  ...ofPeople([{ name: 'recipients_remove', input: ({ recipient_id }) => ({ recipient_id }) }]),
]

/** What nobody does without the page, each after the act that makes it so. */
export const actsOfPeople: Step[] = [
  { name: 'policy_tighten', input: { per_day_usd: '10' } },
  { name: 'policy_tighten', input: { per_day_usd: '20' }, fault: { 'a key pair': 'step_up_required' } },
  { name: 'policy_kill', input: { on: true } },
  { name: 'policy_kill', input: { on: false }, fault: { 'a key pair': 'step_up_required' } },
  { ...adding, fault: { 'a key pair': 'step_up_required' } },
  {
    name: 'agents_link',
    input: { code: '7K3M-Q0WD-2XNB' },
    fault: { 'a key pair': 'step_up_required', 'a person': 'not_found' },
  },
]
