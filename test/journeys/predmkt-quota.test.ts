/** Set-ups while the quota of the prediction market's relayer is used up. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { bySize } from '../proof/support/seed.ts'
import { type Ended, executed, predictionVenue, statusOf } from './predmkt-calls.ts'
import { createFundedPerson, type Person } from './users.ts'

const usersCount = bySize({ short: 2, full: 20, nightly: 20 })
const resetMs = bySize({ short: 6_000, full: 20_000, nightly: 20_000 })
/** The wallet, and its approvals. */
const actionsPerUser = 2
type Counted = { fault: { endpoint?: string }; struck: number }

describe('a quota of the relayer that is used up', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let venue: ReturnType<typeof predictionVenue>
  before(async () => {
    gateway = await freshGateway(
      { RATE_MONEY: '0', RATE_EXIT: '0', RATE_READ: '0', POLYMARKET_RELAYS_PER_DAY: '3' },
      { ownWorld: 'the quota of its relayer is used up' },
    )
    venue = predictionVenue(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const newcomer = async (): Promise<Person> => {
    const person = await createFundedPerson(gateway.url)
    await person.call('POST /predmkt/disclaimer/acknowledge', { body: {} })
    return person
  }
  const requests = async () =>
    (await venue<Counted[]>('GET', '/faults')).find(({ fault }) => fault.endpoint === 'relayer')!.struck

  test('one user uses up an own allowance, and not the quota that all users share', async () => {
    const [greedy, other] = [await newcomer(), await newcomer()]
    for (const person of [greedy, other]) {
      await executed(person, '/predmkt/setup')
      const { safe_address: wallet } = await statusOf(person)
      await venue('POST', '/credit', { wallet, token: 'pusd', amount: '20' })
    }
    // The set-ups were of the day before.
    for (const resetsInMs of [0, 3_600_000]) await venue('POST', '/relayer-quota', { resetsInMs })
    await venue('POST', '/realism', { relayer: { dailyQuota: 5 } })
    // Exits may use twice the allowance, of which the set-up has used its actions.
    const body = { amount_usdc: '1', token: 'pusd' }
    const dust = await greedy.call('POST /predmkt/withdraw', { body: { ...body, amount_usdc: '0.000001' } })
    assert.deepEqual([dust.status, dust.body.code], [422, 'validation'], JSON.stringify(dust.body))
    for (let used = actionsPerUser; used < 6; used += 1) await executed(greedy, '/predmkt/withdraw', body)
    const refused = await greedy.call<{ code: string; budget: string }>('POST /predmkt/withdraw', { body })
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.budget],
      [429, 'rate_limited', 'predmkt_relays'],
      JSON.stringify(refused.body),
    )
    await executed(other, '/predmkt/withdraw', body)
    await venue('POST', '/realism', { preset: 'quiet' })
    await venue('POST', '/relayer-quota', { resetsInMs: 0 })
  })

  test('requests at the same time use up no more than the allowance', async () => {
    const person = await newcomer()
    await executed(person, '/predmkt/setup')
    const { safe_address: wallet } = await statusOf(person)
    await venue('POST', '/credit', { wallet, token: 'pusd', amount: '20' })
    const withdraw = () =>
      person.call<Ended>('POST /predmkt/withdraw', { body: { amount_usdc: '1', token: 'pusd' } })
    const replies = await Promise.all(Array.from({ length: 8 }, withdraw))
    const ends = await Promise.all(
      replies.map(async ({ status, body }) => {
        if (status === 429) return 'rate_limited'
        const ended = (await person.ended(body.task_id)) as unknown as Ended
        return ended.outcome === 'executed' ? 'executed' : ended.error?.code
      }),
    )
    const executions = 6 - actionsPerUser
    assert.deepEqual(
      ends.toSorted(),
      Array.from({ length: 8 }, (_, at) => (at < executions ? 'executed' : 'rate_limited')),
    )
    await venue('POST', '/relayer-quota', { resetsInMs: 0 })
  })

  test('a withdrawal that waits for the quota for many hours ends by itself, and counts as one action', async () => {
    const person = await newcomer()
    await executed(person, '/predmkt/setup')
    const { safe_address: wallet } = await statusOf(person)
    await venue('POST', '/credit', { wallet, token: 'pusd', amount: '20' })
    const body = { amount_usdc: '1', token: 'pusd' }
    await executed(person, '/predmkt/withdraw', body)
    await venue('POST', '/relayer-quota', { resetsInMs: 3_600_000 })
    await executed(person, '/predmkt/withdraw', body)
    await venue('POST', '/realism', { relayer: { dailyQuota: 1 } })
    const { body: task } = await person.call<Ended>('POST /predmkt/withdraw', { body })
    const database = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
    const waits = `select e.id from effect e join task t on t.id = e.task_id join task_queue q on q.task_id = t.id
      where t.id = $1 and e.status not in ('dropped', 'rejected') and t.state = 'waiting' and q.run_at > now() + interval '1 minute'`
    let last: string | undefined
    // The relayer is asked once an hour, and the signature of the hour before has ended then.
    for (let hour = 1; hour <= 10; hour += 1) {
      last = await eventually(async () => {
        const { rows } = await database.query<{ id: string }>(waits, [task.task_id])
        return rows[0] && rows[0].id !== last ? rows[0].id : undefined
      }, `it waits in hour ${hour}`)
      await database.query(`update effect set valid_until = now() - interval '1 hour' where id = $1`, [last])
      if (hour === 10) await venue('POST', '/realism', { preset: 'quiet' })
      await database.query('update task_queue set run_at = now() where task_id = $1', [task.task_id])
    }
    const ended = await person.ended(task.task_id)
    assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
    // Of the six actions of a day, the set-up has used two, and the withdrawals three.
    await executed(person, '/predmkt/withdraw', body)
    await venue('POST', '/relayer-quota', { resetsInMs: 0 })
    await database.end()
  })

  test('one more set-up waits with the time of the reset, asks nothing until then, and ends by itself', async () => {
    const people = await Promise.all(Array.from({ length: usersCount }, newcomer))
    const late = await newcomer()
    await venue('POST', '/relayer-quota', { resetsInMs: 3_600_000 })
    await venue('POST', '/realism', { relayer: { dailyQuota: usersCount * actionsPerUser } })
    await Promise.all(people.map((person) => executed(person, '/predmkt/setup')))

    await venue('POST', '/relayer-quota', { resetsInMs: resetMs })
    await venue('POST', '/faults', { effect: 'latency', latencyMs: 1, endpoint: 'relayer' })
    const resetsAtMs = Date.now() + resetMs
    const { body: task } = await late.call<Ended>('POST /predmkt/setup', { body: {} })
    const text = await eventually(async () => {
      const now = await late.call<Ended>(`GET /v1/tasks/${task.task_id}`)
      assert.ok(['pending', 'running'].includes(now.body.status), JSON.stringify(now.body))
      return /venue_quota: [^"]*/.exec(JSON.stringify(now.body))?.[0]
    }, 'the set-up waits for the quota')
    const until = Date.parse(/continues at (\S+)$/.exec(text)?.[1] ?? '')
    assert.ok(Math.abs(until - resetsAtMs) < 3_000, `${text} is not ${new Date(resetsAtMs).toISOString()}`)
    const { steps, setup_complete: isComplete } = await statusOf(late)
    assert.equal(isComplete, false)
    assert.ok(steps.some(({ waiting_until: at }) => at !== null && Math.abs(Date.parse(at) - until) < 1_000))

    const before = await requests()
    let last = before
    await eventually(async () => {
      if (Date.now() >= until - 500) return true
      last = await requests()
      return undefined
    }, 'the reset')
    assert.equal(last - before, 0, 'the relayer is asked nothing until then')
    const ended = await late.ended(task.task_id)
    assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
    assert.equal((await statusOf(late)).setup_complete, true)
  })
})
