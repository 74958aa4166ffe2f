import assert from 'node:assert/strict'
import { dataFolder, eventually, launch } from '../harness/gateway.ts'
import { createFundedPerson } from './users.ts'
import { base, type World } from './world.ts'

type Page = { events: { id: string; type: string }[] }
type Survivor = { url: string; databaseUrl: string }

/** Kills an instance in the middle of a task; returns how long the survivor took to complete it, in milliseconds. */
export async function killInstanceOfTask(survivor: Survivor, world: World): Promise<number> {
  const person = await createFundedPerson(survivor.url)
  const third = dataFolder()
  const env = { ...world.env, DATA_DIR: third.path, DATABASE_URL: survivor.databaseUrl }
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
    const tookMs = performance.now() - killedMs
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    assert.equal((await world.effects(person.evm)).length, 1)
    const { events } = (await person.call<Page>('GET /v1/notifications?limit=100')).body
    assert.deepEqual(
      events.map(({ id }) => id),
      events.map((_, index) => String(index + 1)),
    )
    assert.equal(events.at(-1)?.type, 'task.completed')
    return tookMs
  } finally {
    await doomed.kill()
    third[Symbol.dispose]()
  }
}
