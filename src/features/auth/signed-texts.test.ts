import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { agentId, systemRandom } from '#kernel/id.ts'
import { challengeText, isAgentId, isToken, tokenMessages } from './signed-texts.ts'

test('the challenge names its purpose, the gateway, the nonce and its expiry', () => {
  const text = challengeText('https://a.b', 'n', new Date(1_700_000_000_999))
  assert.equal(text, 'portico-register:v1:https://a.b:n:1700000000')
})

test('an agent id is no token, and a token is no agent id', () => {
  const id = agentId(new Date(), systemRandom)
  const token = `agt_${Buffer.from(systemRandom.bytes(32)).toString('base64url')}`
  assert.deepEqual([isAgentId(id), isToken(id), isAgentId(token), isToken(token)], [true, false, false, true])
})

test('no two pairs of agent and timestamp share a message', () => {
  const agent = fc.constantFrom('agt_01HZZZZZZZZZZZZZZZZZZZZZZZ', 'agt_01HZZZZZZZZZZZZZZZZZZZZZZ1')
  const second = fc.maxSafeNat()
  fc.assert(
    fc.property(agent, second, agent, second, (a, at, b, bt) => {
      const [left, right] = [tokenMessages(a, at), tokenMessages(b, bt)].map((each) =>
        each.map((message) => Buffer.from(message).toString('hex')),
      )
      assert.equal(left?.[0] === right?.[0] || left?.[1] === right?.[1], a === b && at === bt)
    }),
  )
})
