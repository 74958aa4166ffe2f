import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approvalsClientId, type Caller, pagesClientId } from '#kernel/contract/caller.ts'
import { askerOf, assertFreshPerson, isFreshPerson } from './fresh-sign-in.ts'

const now = new Date('2026-01-31T12:00:00.000Z')
const secondsAgo = (seconds: number) => new Date(now.getTime() - seconds * 1_000)
const callerOf = (clientId: string, at: Date | null): Caller => ({
  userId: 'user',
  agentId: 'agent',
  scheme: 'oauth',
  scopes: new Set(['manage', 'propose']),
  person: {
    email: 'ada@example.com',
    grantId: 'grant',
    clientId,
    oauthScopes: [],
    hasSignedUp: true,
    signIn: { at, ageMaxSeconds: 300 },
  },
})
const keyPair: Caller = { userId: 'user', agentId: 'agent', scheme: 'keypair', scopes: new Set(['manage']) }

test('the page of approvals is fresh for its time after a sign-in, and no other client ever is', () => {
  assert.equal(isFreshPerson(callerOf(approvalsClientId, secondsAgo(300)), now), true)
  assert.equal(isFreshPerson(callerOf(approvalsClientId, secondsAgo(301)), now), false)
  assert.equal(isFreshPerson(callerOf(approvalsClientId, null), now), false)
  for (const clientId of ['app', pagesClientId, ''])
    assert.equal(isFreshPerson(callerOf(clientId, secondsAgo(0)), now), false, clientId)
  assert.equal(isFreshPerson(keyPair, now), false)
})

test('the fault says whether the page, or the person, is missing', () => {
  const confirm_url = 'https://gateway.example/oauth/approvals/1'
  assert.throws(() => assertFreshPerson(callerOf('app', secondsAgo(0)), now, { confirm_url }), {
    code: 'step_up_required',
    extras: { confirm_url, requires: 'person' },
    message: /let the person open https:\/\/gateway\.example/,
  })
  assert.throws(() => assertFreshPerson(callerOf(approvalsClientId, secondsAgo(400)), now), {
    extras: { requires: 'fresh_sign_in' },
  })
})

test('a caller is an app, an agent or a chat, also right after a sign-in', () => {
  assert.equal(askerOf(callerOf('app', secondsAgo(0))).principal, 'app')
  assert.equal(askerOf(callerOf(approvalsClientId, secondsAgo(0))).principal, 'app')
  assert.equal(askerOf(keyPair).principal, 'agent')
  assert.equal(askerOf({ ...keyPair, via: 'chat' }).principal, 'chat')
})
