import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Caller } from '#kernel/contract/caller.ts'
import { query } from '#store/query.ts'
import { eventually } from '../harness/gateway.ts'
import { createIdentityApp, faultOf, type IdentityApp, newKey } from './identity-app.ts'

let app: IdentityApp
before(async () => {
  app = await createIdentityApp()
})
after(() => app[Symbol.asyncDispose]())

const count = async (from: IdentityApp, table: string) => {
  const rows = await query<{ n: bigint }>(from.db, `select count(*) as n from ${table}`)
  return Number(rows[0]?.n)
}
const tables = ['app_user', 'agent_key', 'wallet', 'credit_bucket', 'transfer']
const counts = (from: IdentityApp) => Promise.all(tables.map((table) => count(from, table)))
const callerOf = async (from: IdentityApp) =>
  from.auth.authenticate(`Bearer ${await from.token(await from.register())}`)
const codeOf = (answer: Promise<unknown>) =>
  answer.then(
    () => 'ok',
    () => faultOf(answer).then(({ code }) => code),
  )

async function challenged(from: Pick<IdentityApp, 'ask'>, turns: number) {
  const key = newKey()
  const public_key = key.publicKey.toString('base64')
  const made = await Promise.all(
    Array.from({ length: turns }, () => from.ask('auth_register', { public_key })),
  )
  return made.map(({ nonce, challenge }) => ({ nonce, signature: key.sign(challenge).toString('base64') }))
}

describe('enrolment', () => {
  test('verification creates the user, one wallet of each kind and 200 credits', async () => {
    const caller = await callerOf(app)
    const user = await app.ask('user_show', {}, caller)
    assert.deepEqual([user.user_id, user.agent_id], [caller.userId, caller.agentId])
    assert.deepEqual(
      user.wallets.map((each) => each.chain_type),
      ['evm', 'solana'],
    )
    assert.match(user.wallets[0]?.address ?? '', /^0x[0-9a-fA-F]{40}$/)
    assert.equal(user.credits_available, 200)
    assert.deepEqual(user.scopes, ['read', 'chat', 'trade', 'earn', 'manage', 'propose'])
    const credits = await app.ask('credits_available', {}, caller)
    const life = new Date(credits.buckets[0]?.expires_at ?? 0).getTime() - app.clock.now().getTime()
    assert.ok(Math.abs(life - 14 * 86_400_000) < 60_000)
  })

  test('200 key pairs of one address mint the credits of a hundred, on two instances and after a restart', async () => {
    await using shared = await createIdentityApp()
    const others = [shared, await shared.instance()]
    const creditsOf = async (address: string, at: Pick<IdentityApp, 'ask'>) => {
      const [answer] = await challenged(at, 1)
      return (await at.ask('auth_verify', answer, null, address)).credits_available
    }
    const of = (addresses: string[]) =>
      Promise.all(addresses.map((address, turn) => creditsOf(address, others[turn % others.length]!)))
    const granted = (credits: number[]) => credits.filter((each) => each === 200).length
    const script = await of(Array(200).fill('192.0.2.1'))
    assert.deepEqual([granted(script), new Set(script)], [100, new Set([0, 200])])
    others.push(await shared.instance())
    assert.deepEqual(await of(Array(6).fill('192.0.2.1')), Array(6).fill(0))
    // An IPv6 network counts as one address.
    const network = Array.from({ length: 120 }, (_, turn) => `2001:db8::${turn.toString(16)}`)
    assert.equal(granted(await of(network)), 100)
    assert.deepEqual(await of(['192.0.2.2', '2001:db8:0:1::1']), [200, 200])
    shared.time.offsetMs += 86_400_000
    const [answer] = await challenged(shared, 1)
    assert.equal((await shared.ask('auth_verify', answer, null, '192.0.2.1')).credits_available, 200)
  })

  test('a verification that fails takes nothing from the address', async () => {
    await using other = await createIdentityApp({
      onSignup: async () => {
        throw new Error('the grant failed')
      },
    })
    for (let turn = 0; turn < 3; turn++) {
      const [answer] = await challenged(other, 1)
      await assert.rejects(other.ask('auth_verify', answer, null, '192.0.2.1'))
    }
    assert.equal(await count(other, 'sign_in_limit'), 0)
  })

  test('50 verifications of one key at once create one user, under one nonce and under 50', async () => {
    for (const nonces of [1, 50]) {
      const before = await counts(app)
      const answers = await challenged(app, nonces)
      const tries = Array.from({ length: 50 }, (_, turn) => answers[turn % nonces] as object)
      const codes = await Promise.all(
        tries.map((each, turn) => codeOf(app.ask('auth_verify', each, null, `10.1.${nonces}.${turn}`))),
      )
      assert.equal(codes.filter((code) => code === 'ok').length, 1)
      const refusal = nonces === 1 ? 'invalid_challenge' : 'duplicate_key'
      assert.equal(codes.filter((code) => code === refusal).length, 49)
      const made = (await counts(app)).map((each, at) => each - (before[at] as number))
      assert.deepEqual(made, [1, 1, 2, 1, 1])
    }
  })

  test('the loser of a race for one key gets the agent that the winner created', async () => {
    const [first, second] = await challenged(app, 2)
    const { agent_id } = await app.ask('auth_verify', first)
    assert.equal((await faultOf(app.ask('auth_verify', second))).extras.agent_id, agent_id)
  })

  test('when the faucet grant fails nothing is created, and the same challenge can be answered again', async () => {
    let broken = true
    const other = await app.instance({
      onSignup: async (_tx, { wallets }) => {
        assert.equal(wallets.length, 2)
        if (broken) throw new Error('the grant failed')
      },
    })
    const [answer] = await challenged(app, 1)
    const before = await counts(app)
    await assert.rejects(other.ask('auth_verify', answer), /the grant failed/)
    assert.deepEqual(await counts(app), before)
    broken = false
    assert.equal(await codeOf(other.ask('auth_verify', answer)), 'ok')
  })

  test('signup credits end after 14 days', async () => {
    const caller = await callerOf(app)
    app.time.offsetMs += 14 * 86_400_000 + 60_000
    const { credits_available, buckets } = await app.ask('credits_available', {}, caller)
    app.time.offsetMs = 0
    assert.deepEqual([credits_available, buckets], [0, []])
  })

  test('the packs are those of the price list', async () => {
    const { packs } = await app.ask('credits_packs', {}, await callerOf(app))
    assert.deepEqual(
      packs.map((each) => [each.price_usd, each.credits]),
      [
        ['5', 300],
        ['10', 650],
        ['20', 1400],
      ],
    )
  })
})

describe('tokens', () => {
  const authenticate = (token: string) => app.auth.authenticate(`Bearer ${token}`)

  test('a token is agt_ and 43 characters, and an agent id is none', async () => {
    const agent = await app.register()
    const token = await app.token(agent)
    assert.match(token, /^agt_[A-Za-z0-9_-]{43}$/)
    assert.equal((await app.auth.authenticate(`bearer  ${token}`)).agentId, agent.agentId)
    for (const header of [undefined, '', 'Bearer', `Basic ${token}`, token])
      assert.equal((await faultOf(app.auth.authenticate(header))).code, 'unauthorized')
    for (const wrong of [
      agent.agentId,
      `${token}x`,
      token.slice(0, -1),
      'eyJhbGciOiJub25lIn0.e30.',
      `x${token}`,
    ])
      assert.equal((await faultOf(authenticate(wrong))).code, 'invalid_token')
  })

  test('only the hash of a token is stored', async () => {
    const token = await app.token(await app.register())
    const rows = await query<{ row: string }>(app.db, 'select access_token::text as row from access_token')
    const dump = rows.map(({ row }) => row).join()
    for (const form of [token, token.slice(4), Buffer.from(token.slice(4), 'base64url').toString('hex')])
      assert.equal(dump.includes(form), false)
  })

  test('a token expires, also where it is cached', async () => {
    const token = await app.token(await app.register())
    app.time.offsetMs += 890_000
    await authenticate(token)
    app.time.offsetMs += 10_000
    assert.equal((await faultOf(authenticate(token))).code, 'invalid_token')
    app.time.offsetMs = 0
  })

  test('a revoked token is invalid on the instance that did not revoke it', async () => {
    const other = await app.instance()
    const token = await app.token(await app.register())
    await other.auth.authenticate(`Bearer ${token}`)
    await authenticate(token)
    await app.auth.revoke(token)
    const codeAt = (each: Pick<IdentityApp, 'auth'>) => codeOf(each.auth.authenticate(`Bearer ${token}`))
    assert.equal(await codeAt(app), 'invalid_token')
    await eventually(
      async () => ((await codeAt(other)) === 'invalid_token' ? true : undefined),
      'the token is invalid on the other instance',
      20_000,
    )
  })

  test('a suspended user is rejected at once, and gets no further token', async () => {
    const agent = await app.register()
    const token = await app.token(agent)
    const { userId } = await authenticate(token)
    await app.auth.suspend(userId)
    assert.equal((await faultOf(authenticate(token))).code, 'suspended')
    app.time.offsetMs += 1_000
    assert.equal((await faultOf(app.token(agent))).code, 'suspended')
    await app.auth.resume(userId)
    assert.equal((await authenticate(token)).userId, userId)
    app.time.offsetMs = 0
  })

  test('a user whose keys are revoked has no tokens and cannot get one', async () => {
    const agent = await app.register()
    const token = await app.token(agent)
    await app.auth.revokeUser((await authenticate(token)).userId)
    app.time.offsetMs += 1_000
    assert.equal((await faultOf(authenticate(token))).code, 'invalid_token')
    assert.equal((await faultOf(app.token(agent))).code, 'invalid_signature')
    app.time.offsetMs = 0
  })

  test('a token carries the scopes that it was issued with', async () => {
    const { userId } = await callerOf(app)
    const { scopes }: Caller = await authenticate(await app.auth.issue(userId, ['read'], 60_000))
    assert.deepEqual([...scopes], ['read'])
  })

  test('the sweep drops expired rows and nothing else', async () => {
    const token = await app.token(await app.register())
    await app.auth.sweep()
    assert.ok(await authenticate(token))
    app.time.offsetMs += 3_600_000
    await app.auth.sweep()
    const left = await Promise.all(
      ['challenge', 'spent_signature', 'access_token'].map((each) => count(app, each)),
    )
    assert.deepEqual(left, [0, 0, 0])
    app.time.offsetMs = 0
  })
})
