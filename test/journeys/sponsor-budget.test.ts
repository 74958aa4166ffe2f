/** The gas budget of one user, and the reserve for withdrawals. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { createFundedPerson, type Person } from './users.ts'
import { type World, worldOf } from './world.ts'

type Refusal = {
  code: string
  reason?: string
  budget?: string
  owner?: string
  limit?: string
  used?: string
  full_again_at?: string
}
const gwei = '0x3b9aca00'
const milliEther = 10n ** 15n

describe('the gas that a sponsor pays', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let admin: pg.Pool
  before(async () => {
    gateway = await freshGateway({ SPONSOR_USER_DAY: '0.002' })
    world = await worldOf(gateway.world)
    admin = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
  })
  after(async () => {
    // The tests that follow share the world, and the keys of its sponsors.
    await setSponsors(100_000n * milliEther)
    await admin?.end()
    await gateway?.[Symbol.asyncDispose]()
  })

  /** A gas price that does not fall while few blocks are mined. */
  const atGwei = () => world.rpc('anvil_setNextBlockBaseFeePerGas', [gwei])
  const setSponsors = async (wei: bigint) => {
    const { rows } = await admin.query(
      `select signer from nonce_sequence where kind = 'evm' and chain = '8453'`,
    )
    assert.ok(rows.length > 0)
    for (const { signer } of rows) await world.rpc('anvil_setBalance', [signer, `0x${wei.toString(16)}`])
  }
  const open = async (person: Person, amount: string) => {
    const { status, body } = await person.deposit(amount)
    assert.deepEqual([status, body.outcome], [200, 'executed'], JSON.stringify(body))
    return body.result.position_id
  }

  test('the deposits and small withdrawals of one user end at its own budgets, and no other user is rejected', async () => {
    const [greedy, other] = await Promise.all([
      createFundedPerson(gateway.url),
      createFundedPerson(gateway.url),
    ])
    const position_id = await open(greedy, '100')
    const others = await open(other, '20')
    // One nonce sequence each, so that all of them are known; its value does not matter.
    for (let n = 0; n < 8; n++) await open(other, '1')
    await setSponsors(12n * milliEther + milliEther / 2n)
    // What deposits have used up is not what withdrawals need.
    for (const [route, more, limit] of [
      ['POST /v1/earn/deposit?wait=true', {}, '0.002'],
      ['POST /v1/earn/withdraw?wait=true', { position_id }, '0.004'],
    ] as const) {
      let executed = 0
      let refused: Refusal | undefined
      for (let n = 0; n < 40; n++) {
        await atGwei()
        const body = { amount_usdc: '1', ...more }
        const answer = await greedy.call<Refusal & { outcome: string }>(route, { body })
        if (answer.status === 200) executed += answer.body.outcome === 'executed' ? 1 : 0
        else {
          assert.equal(answer.status, 429, JSON.stringify(answer.body))
          refused = answer.body
        }
      }
      assert.ok(executed >= 2 && executed < 30, `${executed} were executed: ${route}`)
      assert.deepEqual(
        [refused?.code, refused?.reason, refused?.budget, refused?.owner, refused?.limit],
        ['rate_limited', 'sponsor_budget', 'sponsor_gas_per_day', 'user', limit],
      )
      assert.match(String(refused?.full_again_at), /T00:00:00.000Z$/)
      assert.ok(Number(refused?.used) <= Number(limit))
    }

    await atGwei()
    const part = await other.withdraw({ position_id: others, amount_usdc: '5' })
    assert.deepEqual([part.status, part.body.outcome], [200, 'executed'], JSON.stringify(part.body))
    const out = await other.withdraw({ position_id: others })
    assert.deepEqual([out.status, out.body.outcome], [200, 'executed'], JSON.stringify(out.body))
    // Its own full withdrawal is allowed too.
    const whole = await greedy.withdraw({ position_id })
    assert.deepEqual([whole.status, whole.body.outcome], [200, 'executed'], JSON.stringify(whole.body))
  })

  test('the last funds of a sponsor are reserved for whole withdrawals', async () => {
    const person = await createFundedPerson(gateway.url)
    const position_id = await open(person, '20')
    await setSponsors(5n * milliEther)
    // More than the user has: no task is accepted before the gateway has read the balances again.
    const refused = await eventually(
      async () => {
        const { status, body } = await person.call<Refusal>('POST /v1/earn/deposit', {
          body: { amount_usdc: '20000' },
        })
        if (status === 503) return body
        assert.equal(body.code, 'insufficient_balance', JSON.stringify(body))
        return undefined
      },
      'deposits are rejected',
      20_000,
    )
    assert.deepEqual(
      [refused.reason, refused.budget, refused.owner],
      ['sponsor_paused', 'sponsor_balance', 'platform'],
    )
    const part = await person.call<Refusal>('POST /v1/earn/withdraw', {
      body: { position_id, amount_usdc: '1' },
    })
    assert.deepEqual([part.status, part.body.reason], [503, 'sponsor_paused'])
    const out = await person.withdraw({ position_id })
    assert.deepEqual([out.status, out.body.outcome], [200, 'executed'], JSON.stringify(out.body))
    assert.equal(await world.nativeOf(person.evm), 0n)
  })
})
