import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { createFundedPerson, type Person, type TaskBody } from './users.ts'
import { base, type World, worldOf } from './world.ts'

const chain = `evm:${base}`
const send = ['eth_sendRawTransaction']
const receipt = ['eth_getTransactionReceipt']
const pollIntervalMs = 40

describe('an upstream loses replies, and a task still reports the truth', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway({}, { ownWorld: 'a chain stops' })
    world = await worldOf(gateway.world)
  })
  afterEach(() => world.heal())
  after(() => gateway?.[Symbol.asyncDispose]())

  /** Polls the user's tasks meanwhile: no intermediate state may state what is not known. */
  async function watched<T>(person: Person, run: () => Promise<T>): Promise<T> {
    const stop = new AbortController()
    let samples = 0
    const watcher = (async () => {
      while (!stop.signal.aborted) {
        const { status, body } = await person.call<{ items: TaskBody[] }>('GET /v1/tasks')
        assert.equal(status, 200)
        for (const task of body.items) {
          samples += 1
          const snapshot = JSON.stringify(task)
          if (task.status === 'completed') assert.equal(task.outcome, 'executed', snapshot)
          else if (task.status === 'running')
            assert.ok(task.outcome === null || task.outcome === 'unknown', snapshot)
          else assert.deepEqual([task.status, task.outcome], ['pending', null], snapshot)
        }
        await delay(pollIntervalMs)
      }
    })()
    try {
      const result = await Promise.race([run(), watcher.then(() => assert.fail('the polling ended early'))])
      assert.ok(samples > 0)
      return result
    } finally {
      stop.abort()
      await watcher
    }
  }

  /** One event on the chain, under a hash that the task names; other signed transactions were replacements. */
  async function happenedOnce(person: Person, task: TaskBody): Promise<void> {
    assert.deepEqual([task.status, task.outcome], ['completed', 'executed'], JSON.stringify(task))
    const effects = await world.effects(person.evm)
    assert.deepEqual(
      effects.map(({ tx_hash }) => tx_hash),
      [task.result.tx_hash],
    )
    assert.equal(new Set(task.transactions.map(({ nonce }) => nonce)).size, 1)
    for (const { tx_hash, status } of task.transactions)
      assert.equal(status, tx_hash === task.result.tx_hash ? 'finalized' : 'replaced')
    assert.equal(await world.usdcOf(person.evm), 9_990_000_000n)
  }

  const faults = [
    ['drops the reply to the send', { drop_reply: true, methods: send, count: 1 }],
    ['drops every reply to a send', { drop_reply: true, methods: send }],
    ['drops the replies to the first look-ups', { drop_reply: true, methods: receipt, count: 2 }],
    ['answers 429 to the send', { status: 429, methods: send, count: 2 }],
    ['answers 503 to sends and look-ups', { status: 503, methods: [...send, ...receipt], count: 3 }],
    ['answers with HTML pages', { html: true, status: 502, methods: [...send, ...receipt], count: 3 }],
    [
      'answers with HTML pages under 200',
      { html: true, status: 200, methods: [...send, ...receipt], count: 3 },
    ],
    ['cuts one connection of three', { refuse: true, methods: [...send, ...receipt], rate: 0.34, seed: 7 }],
  ] as const

  for (const [what, fault] of faults)
    test(`an upstream that ${what} causes one deposit and never a false report`, async () => {
      const person = await createFundedPerson(gateway.url)
      await watched(person, async () => {
        await world.fault(chain, fault)
        const accepted = await person.deposit('10', { query: '' })
        assert.equal(accepted.status, 200, JSON.stringify(accepted.body))
        const hit = async () => ((await world.faultHits(chain)) > 0 ? true : undefined)
        await eventually(hit, 'the failure has applied')
        if (!('count' in fault)) {
          await eventually(
            async () => ((await world.effects(person.evm)).length > 0 ? true : undefined),
            'sent',
          )
          await world.heal()
        }
        await happenedOnce(person, await person.ended(accepted.body.task_id, 30_000))
      })
    })

  test('a chain that rejects connections for a while delays a task and loses nothing', async () => {
    const person = await createFundedPerson(gateway.url)
    await watched(person, async () => {
      await world.fault(chain, { latency_ms: 300, methods: send })
      const { task_id } = (await person.deposit('10', { query: '' })).body
      await eventually(async () => ((await person.task(task_id)).cancellable ? undefined : true), 'signed')
      await world.fault(chain, { refuse: true })
      const unknown = await eventually(
        async () => {
          const now = await person.task(task_id)
          return now.outcome === 'unknown' || now.status !== 'running' ? now : undefined
        },
        'the outcome is unknown',
        20_000,
      )
      assert.deepEqual([unknown.status, unknown.outcome], ['running', 'unknown'], JSON.stringify(unknown))
      const other = await person.call<Record<string, unknown>>('POST /v1/earn/deposit', {
        body: { amount_usdc: '10' },
      })
      const { code, outcome } = other.body
      assert.deepEqual([other.status, code, outcome], [503, 'unavailable', 'not_executed'])
      await world.heal()
      await happenedOnce(person, await person.ended(task_id, 30_000))
    })
  })

  test('after a node stops in the middle of a task and comes back, the task is reconciling and then done', async () => {
    const person = await createFundedPerson(gateway.url)
    await watched(person, async () => {
      await world.fault(chain, { latency_ms: 1_000, methods: send })
      const { task_id } = (await person.deposit('10', { query: '' })).body
      await eventually(async () => ((await person.task(task_id)).cancellable ? undefined : true), 'signed')
      await world.chain(base, 'stop')
      await world.heal()
      await eventually(
        async () => ((await person.task(task_id)).outcome === 'unknown' ? true : undefined),
        'the outcome is unknown',
        20_000,
      )
      await world.chain(base, 'start')
      await happenedOnce(person, await person.ended(task_id, 30_000))
    })
    assert.equal((await person.deposit('5')).body.outcome, 'executed')
  })

  test('a rejection before anything was signed is reported as such: nothing was sent, and the same key may be used again', async () => {
    const person = await createFundedPerson(gateway.url)
    await world.fault(chain, { status: 503 })
    const refused = await person.call<Record<string, unknown>>('POST /v1/earn/deposit?wait=true', {
      key: 'patient',
      body: { amount_usdc: '10' },
    })
    const { code, retryable, outcome } = refused.body
    assert.deepEqual([refused.status, code, retryable, outcome], [503, 'unavailable', true, 'not_executed'])
    assert.doesNotMatch(String(refused.body.detail), /127\.0\.0\.1|localhost/)
    assert.ok(Number(refused.headers.get('retry-after')) >= 1)
    await world.heal()
    await happenedOnce(person, (await person.deposit('10', { key: 'patient' })).body)
  })
})
