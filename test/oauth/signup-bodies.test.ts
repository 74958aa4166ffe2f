/** Bodies of a sign-up: any of them is stored as sent or refused by name, and none is a 5xx. */
import assert from 'node:assert/strict'
import { createPrivateKey, type KeyObject, randomUUID, sign } from 'node:crypto'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { query } from '#store/query.ts'
import { hostileBodies } from '../proof/support/hostile-inputs.ts'
import { bySize, proofSeed } from '../proof/support/seed.ts'
import { createOAuthApp, type OAuthApp } from './oauth-app.ts'
import { codeFor } from './session.ts'

const count = bySize({ short: 200, full: 500, nightly: 5_000 })
const seed = proofSeed('signup')

type Claims = { sub: string; [name: string]: unknown }

let app: OAuthApp
let header: string
let claims: Claims
let key: KeyObject
before(async () => {
  app = await createOAuthApp()
  const token = (await (await codeFor(app)).redeem()).access_token
  const [first = '', second = ''] = token.split('.')
  header = first
  claims = JSON.parse(Buffer.from(second, 'base64url').toString()) as Claims
  const { signing } = await app.composed.features.oauth!.keys.current()
  key = createPrivateKey({ key: signing[0]!, format: 'jwk' } as never)
})
after(() => app?.[Symbol.asyncDispose]())

/** The token of a copy of the person, who consented to the same application before consent made accounts. */
async function newPerson(): Promise<{ id: string; token: string }> {
  const id = randomUUID()
  await query(
    app.database.pool,
    `insert into person (id, email, password_hash, created_at)
     select $1, $2, password_hash, created_at from person where id = $3`,
    [id, `${id}@example.com`, claims.sub],
  )
  const grant = `grant-${id}`
  await query(
    app.database.pool,
    `insert into oauth_record select (jsonb_populate_record(each, jsonb_build_object('id', $1::text, 'account_id', $2::text))).*
     from oauth_record each where model = 'Grant' and account_id = $3`,
    [grant, id, claims.sub],
  )
  const body = Buffer.from(JSON.stringify({ ...claims, sub: id, grant_id: grant })).toString('base64url')
  const signature = sign('sha256', Buffer.from(`${header}.${body}`), { key, dsaEncoding: 'ieee-p1363' })
  return { id, token: `${header}.${body}.${signature.toString('base64url')}` }
}

/** A body as JSON: no body and null are an empty object, and the negative zero of JavaScript is no number of a database. */
const jsonOf = (body: string | Uint8Array): unknown => {
  const text = new TextDecoder().decode(Buffer.from(body))
  return JSON.parse(JSON.stringify(text === '' ? {} : JSON.parse(text))) ?? {}
}

test('generated bodies of a sign-up meet no 5xx, and an accepted one is stored as sent', async () => {
  const bodies = fc.sample(hostileBodies(['name', 'referral', '__proto__']), { numRuns: count, seed })
  let person = await newPerson()
  let accepted = 0
  for (const body of bodies) {
    const reply = await fetch(`${app.base}/signup`, {
      method: 'POST',
      headers: { authorization: `Bearer ${person.token}`, 'content-type': 'application/json' },
      body,
    })
    const message = `PROOF_SEED=${seed} ${Buffer.from(body).toString('latin1').slice(0, 400)}: ${reply.status}`
    const answer = (await reply.json()) as { created?: boolean }
    assert.ok([200, 400, 413, 415, 422].includes(reply.status), message)
    if (reply.status !== 200) continue
    accepted++
    assert.equal(answer.created, true, message)
    const [row] = await query<{ signup: unknown }>(
      app.database.pool,
      'select signup from person where id = $1',
      [person.id],
    )
    assert.deepEqual(row?.signup, jsonOf(body), message)
    person = await newPerson()
  }
  assert.ok(accepted >= count / 20, `${accepted} of ${count} bodies were accepted`)
})
