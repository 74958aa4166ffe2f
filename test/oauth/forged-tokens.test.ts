/** Forged, altered and foreign access tokens: each is 401, none a 5xx. */
import assert from 'node:assert/strict'
import { createHmac, createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { after, before, test } from 'node:test'
import { http } from '../harness/gateway.ts'
import { createOAuthApp, type OAuthApp } from './oauth-app.ts'
import { codeFor } from './session.ts'

type Json = Record<string, unknown>

let app: OAuthApp
let valid: string
let header: Json
let claims: Json
/** The key of the server itself: what only a fault of ours could sign. */
let own: KeyObject
let publicPem: string
before(async () => {
  app = await createOAuthApp()
  valid = (await (await codeFor(app)).redeem()).access_token
  const [first = '', second = ''] = valid.split('.')
  header = JSON.parse(Buffer.from(first, 'base64url').toString())
  claims = JSON.parse(Buffer.from(second, 'base64url').toString())
  const { signing } = await app.composed.features.oauth!.keys.current()
  own = createPrivateKey({ key: signing[0]!, format: 'jwk' } as never)
  publicPem = JSON.stringify((await http(`${app.base}/oauth/jwks`)).body)
})
after(() => app?.[Symbol.asyncDispose]())

const encode = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const foreign = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey

const signed = (head: Json, body: unknown, key: KeyObject = own): string => {
  const text = `${encode(head)}.${encode(body)}`
  const hash = key.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  return `${text}.${sign(hash, Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}
const withHeader = (changes: Json, key?: KeyObject) => signed({ ...header, ...changes }, claims, key)
const withClaims = (changes: Json) => signed(header, { ...claims, ...changes })
const now = () => Math.floor(Date.now() / 1000)
const parts = () => valid.split('.') as [string, string, string]

const forgeries: Record<string, () => string> = {
  'alg none': () => `${encode({ ...header, alg: 'none' })}.${parts()[1]}.`,
  'alg None': () => `${encode({ ...header, alg: 'None' })}.${parts()[1]}.`,
  'alg NONE': () => `${encode({ ...header, alg: 'NONE' })}.${parts()[1]}.${parts()[2]}`,
  'alg nOnE': () => `${encode({ ...header, alg: 'nOnE' })}.${parts()[1]}.`,
  'alg absent': () => `${encode({ ...header, alg: undefined })}.${parts()[1]}.${parts()[2]}`,
  'HS256 with the public key': () => {
    const text = `${encode({ ...header, alg: 'HS256' })}.${parts()[1]}`
    return `${text}.${createHmac('sha256', publicPem).update(text).digest('base64url')}`
  },
  'HS256 with an empty key': () => {
    const text = `${encode({ ...header, alg: 'HS256' })}.${parts()[1]}`
    return `${text}.${createHmac('sha256', '').update(text).digest('base64url')}`
  },
  'RS256 of a foreign key': () => withHeader({ alg: 'RS256' }, rsa),
  'ES384 in the header': () => withHeader({ alg: 'ES384' }),
  'EdDSA in the header': () => withHeader({ alg: 'EdDSA' }),
  'a foreign key under our id': () => withHeader({}, foreign),
  'kid that climbs folders': () => withHeader({ kid: '../../../../dev/null' }, foreign),
  'kid with SQL': () => withHeader({ kid: "' or 1=1 --" }, foreign),
  'kid absent': () => withHeader({ kid: undefined }),
  'kid that is a number': () => withHeader({ kid: 7 }),
  'kid unknown': () => withHeader({ kid: 'unknown' }, foreign),
  'jku of a stranger': () => withHeader({ jku: 'https://attacker.example/jwks' }),
  'x5u of a stranger': () => withHeader({ x5u: 'https://attacker.example/cert' }),
  'jwk in the header': () => withHeader({ jwk: foreign.export({ format: 'jwk' }) }, foreign),
  'x5c in the header': () => withHeader({ x5c: ['AAAA'] }),
  'crit that is unknown': () => withHeader({ crit: ['exp2'], exp2: 1 }),
  'b64 false': () => withHeader({ b64: false, crit: ['b64'] }),
  'typ JWT': () => withHeader({ typ: 'JWT' }),
  'typ of an id token': () => withHeader({ typ: undefined }),
  'issuer of a stranger': () => withClaims({ iss: 'https://attacker.example' }),
  'issuer with a slash': () => withClaims({ iss: `${app.base}/` }),
  'audience of a stranger': () => withClaims({ aud: 'https://attacker.example' }),
  'audience absent': () => withClaims({ aud: undefined }),
  'audience as a list': () => withClaims({ aud: [app.base, 'https://attacker.example'] }),
  'azp of another client': () => withClaims({ azp: 'another' }),
  'expired beyond the tolerance': () => withClaims({ exp: now() - 31 }),
  'exp absent': () => withClaims({ exp: undefined }),
  'exp as text': () => withClaims({ exp: String(now() + 600) }),
  'nbf in the future': () => withClaims({ nbf: now() + 120 }),
  'iat in the future': () => withClaims({ iat: now() + 3_600 }),
  'sub that is no person': () => withClaims({ sub: '01890000-0000-7000-8000-000000000000' }),
  'sub with SQL': () => withClaims({ sub: "' or 1=1 --" }),
  'grant that does not exist': () => withClaims({ grant_id: 'unknown' }),
  'grant absent': () => withClaims({ grant_id: undefined }),
  'duplicate claims in a signed body of a stranger': () =>
    signed(header, `{"sub":"x",${JSON.stringify(claims).slice(1)}`, foreign),
  'signature of zeros': () => `${parts()[0]}.${parts()[1]}.${encode('\0'.repeat(64))}`,
  'signature empty': () => `${parts()[0]}.${parts()[1]}.`,
  'signature in DER': () => {
    const text = `${parts()[0]}.${parts()[1]}`
    return `${text}.${sign('sha256', Buffer.from(text), own).toString('base64url')}`
  },
  'one bit of the body': () => `${parts()[0]}.${encode({ ...claims, scope: 'openid admin' })}.${parts()[2]}`,
  'nested encrypted token': () => `${encode({ alg: 'dir', enc: 'A256GCM', cty: 'JWT' })}..AAAA.AAAA.AAAA`,
  'two parts': () => parts().slice(0, 2).join('.'),
  'body that is no JSON': () => signed(header, 'not json'),
  'body that is a list': () => signed(header, [1]),
  'a long token': () => withClaims({ filler: 'x'.repeat(6_000) }),
}

test('the untouched token is accepted', async () => {
  const { status, body } = await http(`${app.base}/v1/user`, {
    headers: { authorization: `Bearer ${valid}` },
  })
  assert.deepEqual([status, body.auth_scheme], [200, 'oauth'])
})

test('every forged token is refused with 401 and the exact challenge', async () => {
  for (const [name, forge] of Object.entries(forgeries)) {
    const reply = await http(`${app.base}/v1/user`, { headers: { authorization: `Bearer ${forge()}` } })
    assert.deepEqual([reply.status, reply.body.code], [401, 'invalid_token'], name)
    assert.equal(
      reply.headers.get('www-authenticate'),
      `Bearer resource_metadata="${app.base}/.well-known/oauth-protected-resource"`,
      name,
    )
  }
  assert.ok(Object.keys(forgeries).length >= 40)
})

test('an id token is no access token, and a token of a megabyte is refused by its size', async () => {
  const { redeem } = await codeFor(app)
  const tokens = (await redeem()) as unknown as { id_token: string }
  const asAccess = await http(`${app.base}/v1/user`, {
    headers: { authorization: `Bearer ${tokens.id_token}` },
  })
  assert.equal(asAccess.status, 401)
  const huge = await fetch(`${app.base}/v1/user`, {
    headers: { authorization: `Bearer eyJ${'x'.repeat(1_000_000)}` },
  }).catch(() => ({ status: 431 }))
  assert.equal(huge.status, 431)
})
