/** Shares that move outside the gateway: missing ones stop deposits, and never a withdrawal. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { operatorOf } from '../harness/admin.ts'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { createFundedPerson, type Person, type Positions, type TaskBody } from './users.ts'
import { type World, worldOf } from './world.ts'

type Refusal = { code: string; scope?: string; reason?: string }
type Flagged = { events: { type: string; data: Record<string, string> }[] }
const elsewhere = `0x${'11'.repeat(20)}`
const auditMs = 60_000

describe('shares that moved outside the gateway', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway()
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const positionsOf = async (person: Person) =>
    (await person.call<Positions>('GET /v1/earn/positions')).body.positions
  const flagsOf = async (person: Person) =>
    (await person.call<Flagged>('GET /v1/notifications?types=security.flagged')).body.events
  const sync = async (person: Person) => {
    const { body } = await person.call<TaskBody>('POST /v1/earn/sync?wait=true')
    assert.equal(body.outcome, 'executed', JSON.stringify(body))
  }

  test('missing shares stop deposits and no withdrawal, until positions and chain agree again', async () => {
    const person = await createFundedPerson(gateway.url)
    const older = (await person.deposit('100')).body.result
    const newer = (await person.deposit('50')).body.result
    const removed = BigInt(newer.shares_delta) / 2n
    await world.moveShares(person.evm, elsewhere, removed)
    const flagged = async () => ((await flagsOf(person)).length > 0 ? true : undefined)
    await eventually(flagged, 'the difference is found', auditMs)
    const refused = await person.call<Refusal>('POST /v1/earn/deposit', { body: { amount_usdc: '1' } })
    assert.equal(refused.status, 403)
    const frozen = refused.body
    assert.deepEqual([frozen.code, frozen.scope], ['trading_paused', 'earn'])
    assert.match(String(frozen.reason), new RegExp(String(removed)))
    assert.deepEqual(
      (await flagsOf(person)).map(({ data }) => [data.state, data.code]),
      [['frozen', 'earn_shares_missing']],
    )
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text()
    assert.match(metrics, /^portico_earn_accounts_frozen 1$/m)

    // The newest position is reduced; the older one is unchanged.
    const first = (await person.withdraw({ position_id: older.position_id })).body
    assert.equal(first.result.shares_delta, `-${older.shares_delta}`)
    const second = (await person.withdraw({ position_id: newer.position_id })).body
    assert.equal(second.outcome, 'executed', JSON.stringify(second))
    assert.equal(await world.sharesOf(person.evm), 0n)
    await sync(person)
    assert.deepEqual(
      (await positionsOf(person)).map(({ status, shares }) => [status, shares]),
      [
        ['withdrawn', '0'],
        ['withdrawn', '0'],
      ],
    )
    await eventually(
      async () => {
        const { status } = await person.deposit('1')
        return status === 200 ? true : undefined
      },
      'deposits go on',
      auditMs,
    )
    assert.deepEqual(
      (await flagsOf(person)).map(({ data }) => data.state),
      ['frozen', 'active'],
    )
  })

  test('external shares stop no operation, and a withdrawn position uses them', async () => {
    const [person, giver] = await Promise.all([
      createFundedPerson(gateway.url),
      createFundedPerson(gateway.url),
    ])
    const given = BigInt((await giver.deposit('30')).body.result.shares_delta)
    const { position_id } = (await person.deposit('10')).body.result
    await person.withdraw({ position_id })
    await world.moveShares(giver.evm, person.evm, given)
    const [empty] = await positionsOf(person)
    assert.deepEqual([empty!.status, empty!.external_delta_shares], ['withdrawn', String(given)])
    const before = await world.usdcOf(person.evm)
    await sync(person)
    const [back] = await positionsOf(person)
    assert.deepEqual(
      [back!.status, back!.shares, back!.external_delta_shares],
      ['active', String(given), '0'],
    )
    assert.equal(Number(back!.amount_deposited_usdc).toFixed(3), '30.000')
    // A second comparison finds nothing to book.
    await sync(person)
    assert.equal((await positionsOf(person))[0]!.shares, String(given))
    const out = (await person.withdraw({ position_id })).body
    assert.equal(out.outcome, 'executed', JSON.stringify(out))
    assert.ok((await world.usdcOf(person.evm)) - before >= 29_999_990n)
    assert.equal((await person.deposit('1')).status, 200)
  })

  test('an operator stops the deposits of one user, and allows them again', async () => {
    const operator = operatorOf({ DATABASE_URL: gateway.databaseUrl })
    const person = await createFundedPerson(gateway.url)
    const { position_id } = (await person.deposit('10')).body.result
    await operator.act('a question is open', 'earn-accounts', 'freeze', person.agentId)
    const refused = await person.call<Refusal>('POST /v1/earn/deposit', { body: { amount_usdc: '1' } })
    assert.deepEqual([refused.status, refused.body.scope], [403, 'earn'])
    assert.match(String(refused.body.reason), /a question is open/)
    const part = await person.withdraw({ position_id, amount_usdc: '2' })
    assert.equal(part.body.outcome, 'executed', JSON.stringify(part.body))
    assert.equal((await operator.rows('earn-accounts', 'list')).length, 1)
    await operator.act('it is answered', 'earn-accounts', 'unfreeze', person.agentId)
    assert.equal((await person.deposit('1')).status, 200)
    assert.deepEqual(
      (await flagsOf(person)).map(({ data }) => data.state),
      ['frozen', 'active'],
    )
  })

  test('positions and history are read in pages, each entry once', async () => {
    const person = await createFundedPerson(gateway.url)
    const ids: string[] = []
    for (const amount of ['1', '2', '3']) ids.unshift((await person.deposit(amount)).body.result.position_id)
    await person.withdraw({ position_id: ids[1]! })
    type Page = Positions & { next_after: string | null; next_history_after: string | null }
    const page = async (query: string) => (await person.call<Page>(`GET /v1/earn/positions?${query}`)).body
    const first = await page('limit=2&history_limit=3')
    assert.deepEqual(
      first.positions.map(({ id }) => id),
      ids.slice(0, 2),
    )
    assert.equal(first.history.length, 3)
    const second = await page(`limit=2&after=${first.next_after}&history_after=${first.next_history_after}`)
    assert.deepEqual(
      second.positions.map(({ id }) => id),
      ids.slice(2),
    )
    assert.equal(second.history.length, 1)
    assert.deepEqual([second.next_after, second.next_history_after], [null, null])
    const entries = [...first.history, ...second.history].map(({ id }) => id)
    assert.equal(new Set(entries).size, 4)
    assert.deepEqual(
      (await page('status=active')).positions.map(({ id }) => id),
      [ids[0], ids[2]],
    )
    const active = await page('status=active&limit=1')
    assert.deepEqual([active.positions[0]!.id, active.next_after], [ids[0], ids[0]])
    assert.deepEqual(
      (await page(`status=active&limit=1&after=${active.next_after}`)).positions.map(({ id }) => id),
      [ids[2]],
    )
    assert.deepEqual((await page(`status=withdrawn&after=${ids[1]}`)).positions, [])
    assert.deepEqual(
      (await page('status=withdrawn')).positions.map(({ id }) => id),
      [ids[1]],
    )
  })
})
