import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  type Agent,
  createIdentityApp,
  faultOf,
  type IdentityApp,
  newKey,
  secondsOf,
  tokenRequest,
} from './identity-app.ts'

/** Inputs that the key pair operations reject, and the encodings that they accept. */

const order = 2n ** 252n + 27742317777372353535851937790883648493n
const little = (value: bigint) => Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse()
const big = (bytes: Uint8Array) => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`)
const urlSafe = (text: string) => text.replaceAll('+', '-').replaceAll('/', '_')
const p = 2n ** 255n - 19n
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const nextLetter = (end: string) => letters[letters.indexOf(end.charAt(0)) + 1]

let app: IdentityApp
let agent: Agent
before(async () => {
  app = await createIdentityApp()
  agent = await app.register()
})
after(() => app[Symbol.asyncDispose]())

/** An address of its own for each attempt, so that one case does not lock out the next one. */
let addresses = 0
const ask = (name: string, input: object) => app.ask(name, input, null, `10.0.0.${addresses++}`)
const codeOf = (answer: Promise<unknown>) =>
  answer.then(
    () => 'ok',
    () => faultOf(answer).then(({ code }) => code),
  )
const now = () => secondsOf(app.clock)
const signed = (message: string | Uint8Array, by: Pick<Agent, 'sign'> = agent) =>
  by.sign(message).toString('base64')
const token = (fields: object) => ask('auth_token', { ...tokenRequest(agent, app.clock), ...fields })
const register = (public_key: string) => ask('auth_register', { public_key })
/** With an agent of its own: at the edges a second is never far from one that was signed before. */
const atSecond = async (timestamp: number) =>
  ask('auth_token', tokenRequest(await app.register(), app.clock, timestamp))
const big64 = (timestamp: number) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(BigInt(timestamp))
  return Buffer.concat([Buffer.from(agent.agentId), bytes])
}

/** Each second is signed once only: a signature over the same text would be the same signature. */
let second = 0
const fresh = () => now() - 200 + (second++ % 150)
const tokenOver = (message: (timestamp: number) => string | Uint8Array, change: object = {}) => {
  const timestamp = fresh()
  return token({ timestamp, signature: signed(message(timestamp)), ...change })
}
const plain = (timestamp: number) => `${agent.agentId}${timestamp}`

/** A challenge of a new key, and the answer to it after `change`. */
async function verification(
  change: (made: { nonce: string; challenge: string }, key: ReturnType<typeof newKey>) => object,
) {
  const key = newKey()
  const made = await register(key.publicKey.toString('base64'))
  const right = { nonce: made.nonce, signature: signed(made.challenge, key) }
  return ask('auth_verify', { ...right, ...(await change(made, key)) })
}

const cases: [string, string, () => Promise<unknown>][] = [
  ['a key in standard base64', 'ok', () => register(newKey().publicKey.toString('base64'))],
  ['a key in URL-safe base64', 'ok', () => register(newKey().publicKey.toString('base64url'))],
  ['a key in padded URL-safe base64', 'ok', () => register(urlSafe(newKey().publicKey.toString('base64')))],
  ['a key of 31 bytes', 'validation', () => register(Buffer.alloc(31, 9).toString('base64'))],
  ['a key of 33 bytes', 'validation', () => register(Buffer.alloc(33, 9).toString('base64'))],
  ['a key with a space before it', 'validation', () => register(` ${newKey().publicKey.toString('base64')}`)],
  [
    'a key whose unused bits are set',
    'validation',
    () =>
      register(
        newKey()
          .publicKey.toString('base64')
          .replace(/.=$/, (end) => `${nextLetter(end)}=`),
      ),
  ],
  ['a key in hex', 'validation', () => register(newKey().publicKey.toString('hex'))],
  ['the neutral point as a key', 'validation', () => register(little(1n).toString('base64'))],
  ['a point of order 2 as a key', 'validation', () => register(little(p - 1n).toString('base64'))],
  ['a point of order 4 as a key', 'validation', () => register(little(0n).toString('base64'))],
  ['its negative of order 4', 'validation', () => register(little(2n ** 255n).toString('base64'))],
  [
    'a point of order 8 as a key',
    'validation',
    () =>
      register(
        Buffer.from('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05', 'hex').toString(
          'base64',
        ),
      ),
  ],
  ['a second encoding of a key', 'validation', () => register(little(p + 3n).toString('base64'))],
  ['a key that is registered already', 'duplicate_key', () => register(agent.publicKey.toString('base64'))],

  ['the challenge, signed', 'ok', () => verification(() => ({}))],
  [
    'the challenge, signed by another key',
    'invalid_signature',
    () => verification(({ challenge }) => ({ signature: signed(challenge) })),
  ],
  [
    'the nonce, signed in place of the challenge',
    'invalid_signature',
    () => verification(({ nonce }, key) => ({ signature: signed(nonce, key) })),
  ],
  [
    "another key's nonce",
    'invalid_signature',
    () =>
      verification(async () => ({ nonce: (await register(newKey().publicKey.toString('base64'))).nonce })),
  ],
  [
    'a nonce that was never issued',
    'invalid_challenge',
    () => verification(() => ({ nonce: '018f0000-0000-4000-8000-000000000000' })),
  ],
  ['a nonce that is no UUID', 'invalid_challenge', () => verification(() => ({ nonce: "' or 1=1 --" }))],
  [
    'a signature of 63 bytes over the challenge',
    'validation',
    () => verification(() => ({ signature: Buffer.alloc(63).toString('base64') })),
  ],

  ['agent_id and decimal timestamp', 'ok', () => tokenOver(plain)],
  ['agent_id and 8 big-endian bytes', 'ok', () => tokenOver(big64)],
  ['a bare timestamp', 'invalid_signature', () => tokenOver(String)],
  ['a literal || between them', 'invalid_signature', () => tokenOver((at) => `${agent.agentId}||${at}`)],
  [
    'a little-endian timestamp',
    'invalid_signature',
    () => tokenOver((at) => Buffer.concat([Buffer.from(agent.agentId), big64(at).subarray(-8).reverse()])),
  ],
  ['the signature of the second before', 'invalid_signature', () => tokenOver((at) => plain(at - 1))],
  [
    'the last digit moved from the timestamp to the id',
    'invalid_signature',
    () => tokenOver((at) => plain(at), { agent_id: `${plain(fresh()).slice(0, 31)}` }),
  ],
  ['a timestamp at the early edge', 'ok', () => atSecond(now() - 299)],
  ['a timestamp at the late edge', 'ok', () => atSecond(now() + 300)],
  ['a timestamp before the window', 'stale_timestamp', () => atSecond(now() - 302)],
  ['a timestamp after the window', 'stale_timestamp', () => atSecond(now() + 302)],
  ['a timestamp of 0', 'stale_timestamp', () => atSecond(0)],
  ['a timestamp in milliseconds', 'ok', () => atSecond(now() * 1000)],
  ['a timestamp in microseconds', 'stale_timestamp', () => atSecond(now() * 1_000_000)],
  ['a timestamp beyond 2^53', 'stale_timestamp', () => token({ timestamp: 2 ** 60 })],
  ['an unknown agent', 'invalid_signature', () => token({ agent_id: 'agt_01HZZZZZZZZZZZZZZZZZZZZZZZ' })],
  ['an agent id in lower case', 'invalid_signature', () => token({ agent_id: agent.agentId.toLowerCase() })],
  [
    'an agent id with a zero byte',
    'invalid_signature',
    () => token({ agent_id: `${agent.agentId.slice(0, 29)}\0` }),
  ],
  [
    'the signature in hex',
    'validation',
    () => token({ signature: agent.sign(plain(now())).toString('hex') }),
  ],
  [
    'an S plus the order of the group',
    'invalid_signature',
    () => {
      const timestamp = fresh()
      const good = agent.sign(plain(timestamp))
      const twin = Buffer.concat([good.subarray(0, 32), little(big(good.subarray(32)) + order)])
      return token({ timestamp, signature: twin.toString('base64') })
    },
  ],
]

describe('Ed25519 operations', () => {
  for (const [what, expected, run] of cases)
    test(`${what}: ${expected}`, async () => assert.equal(await codeOf(run()), expected))

  test('a signature buys one token, in every encoding', async () => {
    const request = tokenRequest(await app.register(), app.clock)
    assert.equal(await codeOf(ask('auth_token', request)), 'ok')
    const again = await faultOf(ask('auth_token', { ...request, signature: urlSafe(request.signature) }))
    assert.equal(again.code, 'signature_replayed')
    assert.equal(typeof again.extras.server_time, 'number')
  })

  test('of 50 requests with one signature one gets a token', async () => {
    const request = tokenRequest(await app.register(), app.clock)
    const codes = await Promise.all(Array.from({ length: 50 }, () => codeOf(ask('auth_token', request))))
    assert.equal(codes.filter((code) => code === 'ok').length, 1)
    assert.equal(codes.filter((code) => code === 'signature_replayed').length, 49)
  })

  test('a used signature stays used until it would be rejected as stale', async () => {
    const request = tokenRequest(await app.register(), app.clock, now() + 299)
    assert.equal(await codeOf(ask('auth_token', request)), 'ok')
    for (const passedMs of [598_000, 598_999, 599_999]) {
      app.time.offsetMs += passedMs
      await app.auth.sweep()
      const code = await codeOf(ask('auth_token', request))
      app.time.offsetMs -= passedMs
      assert.ok(['signature_replayed', 'stale_timestamp'].includes(code), `${code} after ${passedMs} ms`)
    }
  })

  test('a signature with the latest allowed timestamp buys no second token after a sweep', async () => {
    const signedAt = now() + 300
    const request = tokenRequest(await app.register(), app.clock, signedAt)
    assert.equal(await codeOf(ask('auth_token', request)), 'ok')
    const before = app.time.offsetMs
    // The last moment of the window: 300 s and a fraction after the timestamp.
    app.time.offsetMs += (signedAt + 300) * 1000 + 900 - app.clock.now().getTime()
    await app.auth.sweep()
    const code = await codeOf(ask('auth_token', request))
    app.time.offsetMs = before
    assert.equal(code, 'signature_replayed')
  })

  test('workers of one agent that sign milliseconds of the same second get a token each', async () => {
    const agent = await app.register()
    const second = app.clock.now().getTime() - 5_000
    const requests = [0, 1, 2, 3].map((ms) => tokenRequest(agent, app.clock, second + ms))
    const codes = await Promise.all(requests.map((request) => codeOf(ask('auth_token', request))))
    assert.deepEqual(codes, ['ok', 'ok', 'ok', 'ok'])
    const replayed = await faultOf(ask('auth_token', requests[0]!))
    assert.deepEqual([replayed.code, replayed.retryable], ['signature_replayed', false])
    assert.match(replayed.message, /Count the timestamp up by one.*milliseconds/)
    assert.equal(replayed.extras.next_timestamp, second + 1)
    const stale = await faultOf(ask('auth_token', tokenRequest(agent, app.clock, second - 400_000)))
    assert.deepEqual([stale.code, stale.retryable], ['stale_timestamp', false])
  })

  test('a nonce is used once, and an expired one never', async () => {
    const key = newKey()
    const { nonce, challenge } = await register(key.publicKey.toString('base64'))
    const answer = { nonce, signature: signed(challenge, key) }
    app.time.offsetMs += 301_000
    assert.equal(await codeOf(ask('auth_verify', answer)), 'invalid_challenge')
    app.time.offsetMs -= 301_000
    assert.equal(await codeOf(ask('auth_verify', answer)), 'ok')
    assert.equal(await codeOf(ask('auth_verify', answer)), 'invalid_challenge')
  })

  test('a wrong signature leaves the challenge valid for the right one', async () => {
    const key = newKey()
    const { nonce, challenge } = await register(key.publicKey.toString('base64'))
    assert.equal(
      await codeOf(ask('auth_verify', { nonce, signature: signed(challenge) })),
      'invalid_signature',
    )
    assert.equal(await codeOf(ask('auth_verify', { nonce, signature: signed(challenge, key) })), 'ok')
  })

  test('an unknown agent and a wrong signature get the same answer', async () => {
    const wrong = await faultOf(tokenOver(String))
    const unknown = await faultOf(token({ agent_id: 'agt_01HZZZZZZZZZZZZZZZZZZZZZZY' }))
    assert.deepEqual(
      [unknown.code, unknown.message, unknown.extras],
      [wrong.code, wrong.message, wrong.extras],
    )
  })

  test('a stale timestamp is answered with the time of the server', async () => {
    const fault = await faultOf(atSecond(now() - 1000))
    assert.ok(Math.abs((fault.extras.server_time as number) - now()) <= 1)
  })

  test('after ten failures of an agent at an address another wrong signature is rate-limited, a right one is not', async () => {
    const from = (address: string) =>
      app.ask(
        'auth_token',
        { ...tokenRequest(agent, app.clock, now() - 252), signature: signed('no') },
        null,
        address,
      )
    const codes: string[] = []
    for (let turn = 0; turn < 12; turn++) codes.push(await codeOf(from('192.0.2.1')))
    assert.deepEqual(codes.slice(0, 10), Array(10).fill('invalid_signature'))
    assert.deepEqual(codes.slice(10), ['rate_limited', 'rate_limited'])
    assert.equal(await codeOf(from('192.0.2.2')), 'invalid_signature')
    const parallel = await Promise.all(Array.from({ length: 40 }, () => codeOf(from('192.0.2.3'))))
    assert.equal(parallel.filter((code) => code === 'invalid_signature').length, 10)
    const right = await app.ask('auth_token', tokenRequest(agent, app.clock, now() - 251), null, '192.0.2.1')
    assert.equal(typeof (right as { token?: unknown }).token, 'string')
    const network = ['2001:db8:1:2::1', '2001:db8:1:2:a::b', '2001:db8:1:2:c::d']
    for (let turn = 0; turn < 10; turn++) await codeOf(from(network[turn % 3]!))
    assert.equal(await codeOf(from('2001:db8:1:2::ffff')), 'rate_limited')
  })
})
