/** The person of an agent reads each request and its end, and no agent hides the requests of another one. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { waitingApprovals } from '#durable/approvals/approval-store.ts'
import { ApprovalRequired, actionTerms } from '#kernel/task/approval.ts'
import { eventually } from '../harness/gateway.ts'
import {
  type Admit,
  type EngineFixture,
  executed,
  type Instance,
  newUser,
  openFixture,
} from './engine-fixture.ts'

describe('readers of approvals', () => {
  let fixture: EngineFixture
  let instance: Instance
  const admit: Admit = async (_input, { userId }) => {
    const action = {
      userId,
      operation: 'test_run',
      chainId: '1',
      tokens: [],
      recipients: [],
      usdMicros: 5_000_000n,
      exit: false,
      terms: actionTerms('Send 5 USDC to 0xfriend'),
    }
    throw new ApprovalRequired(action, 'approval_above_usd', 'it is above 1 USD')
  }
  before(async () => {
    fixture = await openFixture()
    instance = await fixture.instance({ steps: { run: async () => executed } }, { admit })
  })
  after(async () => fixture?.[Symbol.asyncDispose]())

  let users = 0
  const addUser = async (scheme: 'oauth' | 'keypair'): Promise<string> => {
    const userId = newUser()
    await fixture.rows(
      'insert into app_user (id, agent_id, auth_scheme, created_at) values ($1, $2, $3, now()) returning id',
      userId,
      `agt_${String(users++).padStart(26, '0')}`,
      scheme,
    )
    return userId
  }
  const link = (agent: string, person: string) =>
    fixture.rows(
      'insert into agent_link (user_id, person_id, linked_at) values ($1, $2, now()) returning user_id',
      agent,
      person,
    )
  const linkedPair = async () => {
    const person = await addUser('oauth')
    const agent = await addUser('keypair')
    await link(agent, person)
    return { person, agent }
  }
  const ask = async (userId: string) => (await instance.run(userId, { timeoutMs: 0 })).task_id
  const eventsOf = async (userId: string) =>
    (
      await fixture.rows<{ type: string; task_id: string; decision: string | null }>(
        `select type, task_id, body->>'decision' as decision from user_event
         where user_id = $1 and type like 'approval.%' order by seq`,
        userId,
      )
    ).map(({ type, task_id, decision }) => [type, task_id, decision])

  test('a request that was cancelled or has expired ends in both logs', async () => {
    const { person, agent } = await linkedPair()
    const cancelled = await ask(agent)
    await instance.taskEngine.tasks.cancel(agent, cancelled)
    await fixture.waitForEnd(cancelled)
    const expired = await ask(agent)
    await fixture.rows(
      `with locked as materialized (select id from task where id = $1 for no key update),
       over as (update approval set requested_at = now() - interval '31 minutes', expires_at = now() - interval '1 second'
         from locked where task_id = locked.id)
       update task_queue set run_at = now() from locked where task_id = locked.id returning task_id`,
      expired,
    )
    await fixture.waitForEnd(expired)
    const events = [
      ['approval.requested', cancelled, null],
      ['approval.cancelled', cancelled, null],
      ['approval.requested', expired, null],
      ['approval.expired', expired, 'expired'],
    ]
    assert.deepEqual(await eventsOf(person), events)
    assert.deepEqual(await eventsOf(agent), events)
  })

  test('a stream of the person has the request and its end', async () => {
    const { person, agent } = await linkedPair()
    const stop = new AbortController()
    const { last } = await instance.taskEngine.events.bounds(person)
    const seen: string[] = []
    const reading = (async () => {
      for await (const page of instance.taskEngine.events.subscribe(person, last, { signal: stop.signal }))
        seen.push(...page.map(({ type }) => type))
    })()
    const taskId = await ask(agent)
    await eventually(async () => seen.includes('approval.requested') || undefined, 'the request')
    await instance.taskEngine.tasks.cancel(agent, taskId)
    await eventually(async () => seen.includes('approval.cancelled') || undefined, 'the end')
    stop.abort()
    await reading
  })

  test('the newest requests of each agent come before the second newest of any, and the newest first', async () => {
    const person = await addUser('oauth')
    const agents = [await addUser('keypair'), await addUser('keypair')] as const
    for (const agent of agents) await link(agent, person)
    const own = await ask(person)
    const quiet = [await ask(agents[1]), await ask(agents[1])] as const
    const busy: string[] = []
    for (let n = 0; n < 6; n++) busy.push(await ask(agents[0]))
    const now = new Date()
    const list = async (limit: number) => {
      const found = await waitingApprovals(fixture.admin.pool, [person, ...agents], { now, limit })
      assert.equal(found.total, 9)
      return found.approvals.map(({ task_id }) => task_id)
    }
    assert.deepEqual(await list(3), [busy[5], quiet[1], own])
    assert.deepEqual(await list(5), [busy[5], busy[4], quiet[1], quiet[0], own])
    assert.deepEqual(await list(200), [...busy.toReversed(), quiet[1], quiet[0], own])
  })

  test('a request locks the logs of the agent and of its person by their ids, as a decision does', async () => {
    const { person, agent } = await linkedPair()
    const older = await addUser('keypair')
    const younger = await addUser('oauth')
    await link(older, younger)
    // Ids grow with time, but those of one millisecond have no order.
    const pairs = [
      { asker: agent, users: [person, agent] },
      { asker: older, users: [older, younger] },
    ]
    for (const { asker, users } of pairs) {
      const [first, second] = users.sort()
      await ask(asker)
      const [holder, probe] = [await fixture.admin.pool.connect(), await fixture.admin.pool.connect()]
      try {
        await holder.query('begin')
        await holder.query('select 1 from user_event_seq where user_id = $1 for update', [first])
        const asking = ask(asker)
        await eventually(
          async () =>
            (
              await fixture.rows(
                `select 1 from pg_locks w where not w.granted and w.locktype in ('transactionid', 'tuple')`,
              )
            ).length > 0 || undefined,
          'the request waits for the first log',
        )
        await probe.query('begin')
        await probe.query('select 1 from user_event_seq where user_id = $1 for update nowait', [second])
        await probe.query('rollback')
        await holder.query('rollback')
        assert.equal((await fixture.readTask(await asking)).state, 'awaiting_approval')
      } finally {
        holder.release()
        probe.release()
      }
    }
  })

  test('an agent that asks while its person declines meets no deadlock', async () => {
    const pairs = await Promise.all(Array.from({ length: 4 }, linkedPair))
    const before = await deadlocks()
    for (let round = 0; round < 6; round++)
      await Promise.all(
        pairs.flatMap(({ agent }) =>
          Array.from({ length: 3 }, async () => {
            const [approval] = await fixture.rows<{ approval_id: string }>(
              'select approval_id from approval where task_id = $1',
              await ask(agent),
            )
            const { approvals } = instance.taskEngine
            const { approval_id: approvalId } = approval!
            approvals.decided(
              await instance.taskEngine.transact((tx) =>
                approvals.decide(tx, { approvalId, decision: 'declined', by: 'agt' }),
              ),
            )
          }),
        ),
      )
    assert.equal(await deadlocks(), before)
  })
  const deadlocks = async () =>
    Number(
      (
        await fixture.rows<{ n: string }>(
          'select deadlocks as n from pg_stat_database where datname = current_database()',
        )
      )[0]!.n,
    )
})
