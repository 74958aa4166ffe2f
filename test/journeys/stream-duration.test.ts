/** How soon another instance completes the task of one that was killed, and its stream continues. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { dataFolder, eventually, freshGateway, launch } from '../harness/gateway.ts'
import { createFundedPerson, type Person } from './users.ts'
import { base, type World, worldOf } from './world.ts'

type Page = { events: { id: string; type: string }[] }

const seqs = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => String(from + index))

describe('a task of a killed instance', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway()
    world = await worldOf(gateway.world)
  })
  afterEach(() => world.heal())
  after(() => gateway?.[Symbol.asyncDispose]())

  const logOf = async (person: Person) => (await person.call<Page>('GET /v1/notifications?limit=100')).body

  test('when an instance is killed in the middle of a task, the other one completes it, and the stream continues there', async () => {
    const person = await createFundedPerson(gateway.url)
    const third = dataFolder()
    const env = { ...world.env, DATA_DIR: third.path, DATABASE_URL: gateway.databaseUrl }
    const doomed = await launch({ env })
    try {
      await world.fault(`evm:${base}`, { latency_ms: 1_000, methods: ['eth_sendRawTransaction'] })
      const accepted = await person.deposit('10', { query: '', key: 'left', at: doomed.url })
      const { task_id } = accepted.body
      await eventually(async () => ((await person.task(task_id)).cancellable ? undefined : true), 'signed')
      await doomed.kill()
      const killedMs = performance.now()
      await world.heal()
      const done = await person.ended(task_id)
      assert.equal(done.outcome, 'executed', JSON.stringify(done))
      assert.ok(
        performance.now() - killedMs < 6_000,
        'recovered within the lease and a second, with some margin',
      )
      assert.equal((await world.effects(person.evm)).length, 1)
      const { events } = await logOf(person)
      assert.deepEqual(
        events.map(({ id }) => id),
        seqs(1, events.length),
      )
      assert.equal(events.at(-1)?.type, 'task.completed')
    } finally {
      await doomed.kill()
      third[Symbol.dispose]()
    }
  })
})
