import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { bearer, eventually, freshGateway } from '../harness/gateway.ts'
import { createFundedPerson, type Person, type TaskBody } from './users.ts'
import { base, type World, worldOf } from './world.ts'

type Refusal = { code: string; status: string; reason: string }

/** Chain requests of a signed task, and no requests of its admission. */
const sendMethods = ['eth_sendRawTransaction', 'eth_getTransactionReceipt']
/** A chain request of every signature. */
const signMethods = ['eth_getCode']
/** Longer than what admission has read may be used for a signature. */
const staleMs = 3_500

describe('a caller waits, leaves and cancels', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway()
    world = await worldOf(gateway.world)
  })
  afterEach(() => world.heal())
  after(() => gateway?.[Symbol.asyncDispose]())

  const chain = `evm:${base}`
  const begin = async (person: Person, amount: string) =>
    (await person.deposit(amount, { query: '' })).body.task_id

  test('wait=true answers with the ended task, and without it with the accepted one', async () => {
    const person = await createFundedPerson(gateway.url)
    const waited = (await person.deposit('10')).body
    assert.deepEqual([waited.status, waited.outcome], ['completed', 'executed'])
    const brief = (await person.deposit('10', { query: '' })).body
    assert.deepEqual(Object.keys(brief).sort(), [
      'idempotency_key',
      'message',
      'poll_url',
      'status',
      'task_id',
    ])
    assert.equal(brief.status, 'running')
    assert.equal((await person.ended(brief.task_id)).outcome, 'executed')
    const tooLong = await person.deposit('10', { query: '?wait=true&timeout=91' })
    assert.equal(tooLong.status, 422)
  })

  test('a wait that times out is 200 with a running task, and the task ends all the same', async () => {
    const person = await createFundedPerson(gateway.url)
    await world.fault(chain, { status: 503, methods: sendMethods })
    let longAnswered = false
    const long = person.deposit('11', { query: '?wait=true&timeout=90' }).finally(() => {
      longAnswered = true
    })
    long.catch(() => undefined)
    const startedMs = performance.now()
    const { status, body } = await person.deposit('10', { query: '?wait=true&timeout=5' })
    assert.ok(performance.now() - startedMs >= 4_900)
    assert.equal(longAnswered, false, 'each wait ends at its own timeout')
    assert.equal(status, 200)
    assert.equal(body.status, 'running', JSON.stringify(body))
    assert.ok(body.outcome === null || body.outcome === 'unknown', JSON.stringify(body))
    await world.heal()
    const done = await person.ended(body.task_id, 20_000)
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    const waited = (await long).body
    assert.deepEqual([waited.status, waited.outcome], ['completed', 'executed'])
    assert.equal((await world.effects(person.evm)).length, 2)
  })

  test('a client that leaves cancels nothing', async () => {
    const person = await createFundedPerson(gateway.url)
    await world.fault(chain, { latency_ms: 1_000, methods: sendMethods })
    const leave = new AbortController()
    const left = fetch(`${gateway.url}/v1/earn/deposit?wait=true`, {
      method: 'POST',
      headers: { ...bearer(person), 'content-type': 'application/json', 'idempotency-key': 'left-behind' },
      body: JSON.stringify({ amount_usdc: '10' }),
      signal: leave.signal,
    }).then(
      () => 'answered',
      () => 'left',
    )
    const accepted = await eventually(async () => {
      const { items } = (await person.call<{ items: TaskBody[] }>('GET /v1/tasks?kind=earn_deposit')).body
      return items[0]
    }, 'the task is accepted')
    leave.abort()
    assert.equal(await left, 'left')
    assert.equal((await person.ended(accepted.task_id, 20_000)).outcome, 'executed')
    const replay = await person.deposit('10', { key: 'left-behind' })
    assert.equal(replay.body.task_id, accepted.task_id)
    assert.equal(replay.headers.get('idempotent-replayed'), 'true')
    assert.equal((await world.effects(person.evm)).length, 1)
  })

  test('a cancel before anything is sent ends the task, releases its hold and moves nothing', async () => {
    const person = await createFundedPerson(gateway.url)
    // Admission reads too slowly to sign, so the task is accepted without a signature, and then cannot begin.
    await world.fault(chain, { latency_ms: staleMs, count: 1, methods: signMethods })
    const accepted = begin(person, '10000')
    await eventually(async () => (await world.faultHits(chain)) === 1 || undefined, 'admission has asked')
    await world.fault(chain, { status: 503, methods: signMethods })
    const id = await accepted
    assert.equal((await person.task(id)).cancellable, true)
    const cancel = () => person.call<{ status: string }>(`POST /v1/tasks/${id}/cancel`)
    assert.equal((await cancel()).status, 200)
    const ended = await person.ended(id, 20_000)
    assert.deepEqual(
      [ended.status, ended.outcome, ended.error?.code],
      ['cancelled', 'not_executed', 'cancelled_by_user'],
    )
    assert.match(ended.message, /^Cancelled: .*Nothing was moved\.$/)
    const again = await cancel()
    assert.deepEqual([again.status, again.body.status], [200, 'cancelled'])
    await world.heal()
    const all = await person.deposit('10000')
    assert.equal(all.body.outcome, 'executed', JSON.stringify(all.body))
    assert.equal((await world.effects(person.evm)).length, 1)
    const { history } = (await person.call<{ history: Record<string, unknown>[] }>('GET /v1/earn/positions'))
      .body
    assert.deepEqual(
      history.map(({ status, tx_hash }) => [status, typeof tx_hash]),
      [
        ['completed', 'string'],
        ['failed', 'object'],
      ],
    )
  })

  test('a cancel after the bytes may be sent is 409 not_cancellable, and the task reports the truth', async () => {
    const person = await createFundedPerson(gateway.url)
    await world.fault(chain, { status: 503, methods: ['eth_getTransactionReceipt'] })
    const id = await begin(person, '10')
    const sent = await eventually(async () => {
      const now = await person.task(id)
      return now.cancellable ? undefined : now
    }, 'the deposit is signed')
    assert.equal(sent.status, 'running')
    const refused = await person.call<Refusal>(`POST /v1/tasks/${id}/cancel`)
    assert.deepEqual([refused.status, refused.body.code], [409, 'not_cancellable'])
    assert.match(refused.body.reason, /sent/)
    await world.heal()
    assert.equal((await person.ended(id, 20_000)).outcome, 'executed')
    const late = await person.call<Refusal>(`POST /v1/tasks/${id}/cancel`)
    assert.deepEqual([late.status, late.body.status, late.body.reason], [409, 'completed', 'it has ended'])
  })
})
