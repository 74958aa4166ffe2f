import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { freshGateway, http, newAgent } from '../harness/gateway.ts'
import { type Person, personOf } from './users.ts'
import { base } from './world.ts'

type Issue = { loc: (string | number)[]; type: string; msg: string }
type Answer = {
  all_passed: boolean
  results: { chain_id: string; token_address: string; status: string; allowed: boolean }[]
  detail: Issue[]
  code: string
}

const fair = '0x70ce000000000000000000000000000000000001'
const levy = '0x70ce000000000000000000000000000000000003'

describe('the security check over HTTP', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let person: Person
  before(async () => {
    gateway = await freshGateway()
    person = await personOf(gateway.url, await newAgent(gateway.url))
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const ask = (tokens: unknown, from = person) =>
    from.call<Answer>('POST /v1/security/check', { body: { tokens } })
  const token = (token_address: string, chain_id: string | number = base) => ({ chain_id, token_address })
  const numbered = (count: number) =>
    Array.from({ length: count }, (_, at) => token(`0x${String(at + 1).padStart(40, '0')}`))

  test('a fair token passes, a taxed one is flagged, and a repeated one is answered once', async () => {
    const { status, body } = await ask([
      token(levy),
      token(fair),
      token(levy.toUpperCase().replace('X', 'x')),
    ])
    assert.equal(status, 200)
    assert.equal(body.all_passed, false)
    assert.deepEqual(
      body.results.map((each) => [each.token_address, each.status, each.allowed]),
      [
        [levy, 'flagged', false],
        [fair, 'passed', true],
      ],
    )
    assert.equal((await ask([token(fair)])).body.all_passed, true)
  })

  test('a wrong address is refused by its place, with the form of its chain', async () => {
    const { status, body } = await ask([
      token(fair),
      token('0x12'),
      token(fair, '7565164'),
      token('not an address', '56'),
    ])
    assert.equal(status, 422)
    assert.deepEqual(
      body.detail.map(({ loc, type }) => [loc.join('.'), type]),
      [
        ['body.tokens.1.token_address', 'invalid_address'],
        ['body.tokens.2.token_address', 'invalid_address'],
      ],
    )
  })

  test('a chain is named by its id or its name, and an unknown name is refused by its place', async () => {
    const named = await ask(['Base', 'base', Number(base)].map((chain) => token(fair, chain)))
    assert.deepEqual(
      named.body.results.map((each) => [each.chain_id, each.status]),
      [[base, 'passed']],
    )
    const { status, body } = await ask([token(fair), token(fair, 'bsae')])
    assert.deepEqual(
      [status, ...body.detail.map(({ loc, type }) => [loc.join('.'), type])],
      [422, ['body.tokens.1.chain_id', 'unsupported_chain']],
    )
    const [unserved] = (await ask([token(fair, '56')])).body.results
    assert.deepEqual([unserved?.chain_id, unserved?.status], ['56', 'unsupported_chain'])
  })

  test('fifty tokens are checked in one request, and none or fifty-one are refused', async () => {
    const { status, body } = await ask(numbered(50))
    assert.deepEqual([status, body.results.length, body.all_passed], [200, 50, false])
    assert.ok(body.results.every(({ allowed }) => !allowed))
    for (const count of [0, 51]) assert.equal((await ask(numbered(count))).status, 422, String(count))
  })

  test('each token takes a point of the budget for reads', async () => {
    const left = async () => {
      const { headers } = await person.call('GET /v1/wallets')
      return Number(/;r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1])
    }
    const before = await left()
    assert.equal((await ask(numbered(50))).status, 200)
    assert.equal(before - (await left()), 51)
  })

  test('a call without a credential is refused', async () => {
    const { status } = await http(`${gateway.url}/v1/security/check`, {
      method: 'POST',
      body: { tokens: [token(fair)] },
    })
    assert.equal(status, 401)
  })
})
