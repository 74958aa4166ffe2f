import assert from 'node:assert/strict'
import { randomUUID, sign } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { bearer, eventually, freshGateway, freshToken, http, keyPair, newAgent } from '../harness/gateway.ts'
import { createFundedPerson, personOf } from './users.ts'

type Holdings = { holdings: { chain_id: string; symbol: string; amount: string }[] }

describe('a new user enrols with a key pair', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  before(async () => {
    gateway = await freshGateway()
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const post = <B>(path: string, body: object) => http<B>(gateway.url + path, { method: 'POST', body })

  test('register, verify and token create a user with two wallets, 200 credits and all scopes', async () => {
    const { publicKey, privateKey } = keyPair()
    const registered = await post<{ challenge: string; nonce: string; expires_at: string }>(
      '/v1/auth/register',
      { public_key: publicKey, agent_name: 'first' },
    )
    assert.equal(registered.status, 200)
    const { challenge, nonce, expires_at } = registered.body
    assert.match(challenge, new RegExp(`^portico-register:v1:${gateway.url}:${nonce}:`))
    assert.ok(Date.parse(expires_at) - Date.now() > 250_000)

    const signature = sign(null, Buffer.from(challenge), privateKey).toString('base64')
    const verified = await post<{
      agent_id: string
      wallets_provisioning: boolean
      credits_available: number
    }>('/v1/auth/verify', { nonce, signature })
    assert.equal(verified.status, 200)
    const { agent_id, ...rest } = verified.body
    assert.match(agent_id, /^agt_[0-9A-Z]{26}$/)
    assert.deepEqual(rest, { wallets_provisioning: false, credits_available: 200 })

    const token = await freshToken(gateway.url, agent_id, privateKey)
    assert.match(token, /^agt_.{43}$/)
    const me = await http<Record<string, unknown>>(`${gateway.url}/v1/user`, { headers: bearer({ token }) })
    assert.equal(me.status, 200)
    assert.equal(me.body.agent_id, agent_id)
    assert.equal(me.body.auth_scheme, 'keypair')
    assert.equal(me.body.credits_available, 200)
    const wallets = me.body.wallets as { chain_type: string; address: string }[]
    assert.deepEqual(wallets.map(({ chain_type }) => chain_type).sort(), ['evm', 'solana'])

    const person = await personOf(gateway.url, { agentId: agent_id, privateKey, publicKey, token })
    const listed = await person.call<{
      wallets: { address: string; supported_chain_ids: string[] }[]
      provisioning: boolean
    }>('GET /v1/wallets')
    assert.equal(listed.body.provisioning, false)
    assert.deepEqual(
      listed.body.wallets.map(({ address }) => address),
      wallets.map(({ address }) => address),
    )
    assert.deepEqual(listed.body.wallets.flatMap(({ supported_chain_ids }) => supported_chain_ids).sort(), [
      '1',
      '137',
      '42161',
      '7565164',
      '8453',
    ])
    const credits = await person.call<{ credits_available: number; buckets: object[] }>('GET /v1/credits')
    assert.equal(credits.body.credits_available, 200)
    assert.equal(credits.body.buckets.length, 1)
    const packs = await person.call<{ packs: { pack_id: string }[] }>('GET /credits/packs')
    assert.deepEqual(
      packs.body.packs.map(({ pack_id }) => pack_id),
      ['5', '10', '20'],
    )
  })

  test('a registered key is reported as such with its agent, and a challenge is valid once', async () => {
    const agent = await newAgent(gateway.url)
    const again = await post<Record<string, unknown>>('/v1/auth/register', { public_key: agent.publicKey })
    assert.equal(again.status, 409)
    assert.equal(again.body.code, 'duplicate_key')
    assert.equal(again.body.agent_id, agent.agentId)

    const { publicKey, privateKey } = keyPair()
    const registered = await post<{ challenge: string; nonce: string }>('/v1/auth/register', {
      public_key: publicKey,
    })
    const { challenge, nonce } = registered.body
    const signature = sign(null, Buffer.from(challenge), privateKey).toString('base64')
    assert.equal((await post('/v1/auth/verify', { nonce, signature })).status, 200)
    const replayed = await post<Record<string, unknown>>('/v1/auth/verify', { nonce, signature })
    assert.equal(replayed.status, 400)
    assert.equal(replayed.body.code, 'invalid_challenge')
  })

  test('the faucet grant arrives in both wallets on every chain without a request of the user', async () => {
    const person = await personOf(gateway.url, await newAgent(gateway.url))
    const funded = await eventually(
      async () => {
        const { body } = await person.call<Holdings>('GET /v1/holdings')
        const chains = new Set(
          body.holdings.filter(({ symbol }) => symbol === 'USDC').map(({ chain_id }) => chain_id),
        )
        const second = body.holdings.some((each) => each.chain_id === '7565164' && each.symbol === 'PYUSD')
        return chains.size === 5 && second ? body : undefined
      },
      'USDC on all five chains, and the second token of Solana',
      20_000,
    )
    for (const { symbol, amount } of funded.holdings)
      if (symbol === 'USDC') assert.equal(amount, '10000000000')
  })

  test("another user's task is 404 and byte-identical to an absent one", async () => {
    const [one, other] = await Promise.all([createFundedPerson(gateway.url), createFundedPerson(gateway.url)])
    const { items } = (await one.call<{ items: { task_id: string }[] }>('GET /v1/tasks')).body
    assert.equal((await one.call(`GET /v1/tasks/${items[0]!.task_id}`)).status, 200)
    const raw = async (path: string, method = 'GET') => {
      const headers = { ...bearer(other), 'x-request-id': 'the-same-request' }
      const reply = await fetch(gateway.url + path, { method, headers })
      return { status: reply.status, text: await reply.text() }
    }
    const foreign = await raw(`/v1/tasks/${items[0]!.task_id}`)
    assert.equal(foreign.status, 404)
    assert.deepEqual(foreign, await raw(`/v1/tasks/${randomUUID()}`))
    assert.deepEqual(foreign, await raw('/v1/tasks/no-uuid-at-all'))
    const cancel = await raw(`/v1/tasks/${items[0]!.task_id}/cancel`, 'POST')
    assert.equal(cancel.status, 404)
    assert.deepEqual(cancel, await raw(`/v1/tasks/${randomUUID()}/cancel`, 'POST'))
  })

  test('without a credential no personal data is returned, and the 401 names where to get one', async () => {
    for (const route of ['/v1/user', '/v1/wallets', '/v1/holdings', '/v1/tasks', '/v1/earn/positions']) {
      const reply = await http<Record<string, unknown>>(gateway.url + route)
      assert.equal(reply.status, 401, route)
      assert.equal(reply.body.code, 'unauthorized')
      assert.equal(
        reply.headers.get('www-authenticate'),
        `Bearer resource_metadata="${gateway.url}/.well-known/oauth-protected-resource"`,
      )
    }
    const wrong = await http(`${gateway.url}/v1/user`, {
      headers: bearer({ token: `agt_${'0'.repeat(43)}` }),
    })
    assert.equal(wrong.status, 401)
    assert.equal(wrong.body.code, 'invalid_token')
  })
})
