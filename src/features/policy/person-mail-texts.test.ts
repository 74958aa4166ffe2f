import assert from 'node:assert/strict'
import { test } from 'node:test'
import { raisedText, recipientText, resumedText } from './person-mail-texts.ts'
import type { Limits } from './rules.ts'

const own = { agentId: 'agt_1', name: null, linkedAt: null }
const linked = { agentId: 'agt_2', name: 'Bot.example', linkedAt: new Date(0) }
const before: Limits = {
  perTransactionMicros: 100_000_000n,
  chatPerDayMicros: 0n,
  perDayMicros: 1_000_000_000n,
  chains: ['1'],
  tokens: ['1:0xa'],
  recipients: ['1:0xb'],
  approvalAboveMicros: 0n,
}
const change = (wanted: Partial<Limits>) => ({
  before,
  wanted,
  chainName: (id: string) => (id === '8453' ? 'Base' : id),
})

test('each limit is notified in words, with the value of before', () => {
  const wanted: Partial<Limits> = {
    perTransactionMicros: 500_000_000n,
    perDayMicros: 2_500_500_000n,
    chains: ['1', '8453'],
    tokens: ['1:0xa', '1:0xc', '1:0xd'],
    recipients: ['1:0xb', '1:0xe'],
    approvalAboveMicros: 50_000_000n,
  }
  const fields = Object.keys(wanted) as (keyof Limits)[]
  assert.equal(
    raisedText(own, fields, change(wanted)),
    'The limits of your account were raised: one action may cost up to 500 USD instead of 100 USD; ' +
      '24 hours may cost up to 2500.5 USD instead of 1000 USD; these chains become allowed: Base; ' +
      'the list of allowed tokens grows by 2 to 3; the list of contracts that operations may pay grows by 1 to 2; ' +
      'requests of agents wait for your approval above 50 USD instead of above 0 USD.',
  )
})

test('a limit that is removed is notified as that, and a linked agent is named with its id', () => {
  const wanted: Partial<Limits> = { tokens: null, approvalAboveMicros: null }
  assert.equal(
    raisedText(linked, ['tokens', 'approvalAboveMicros'], change(wanted)),
    'The limits of the agent “Bot example” (agt_2) were raised: every token becomes allowed; no request of an agent waits for your approval any more.',
  )
  assert.match(resumedText({ ...linked, name: '...' }), /kill switch of the agent agt_2 was lifted/)
})

test('a recipient is notified with its whole address, its chain and what agents may do', () => {
  const recipient = { address: '0xfriend', label: 'Friend', chain: 'Base' }
  assert.equal(
    recipientText(own, { ...recipient, agents: 'approval' }),
    '0xfriend on Base, called “Friend”, was added to the recipients of your account. Agents may send to it with your approval.',
  )
  assert.match(recipientText(own, { ...recipient, agents: 'denied' }), /Agents may not send to it\.$/)
  assert.match(
    recipientText(own, { ...recipient, agents: 'allowed' }),
    /by themselves, within your limits\.$/,
  )
})
