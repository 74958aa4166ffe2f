/** Requests that wait for a person: one decision counts, and an approved request runs once under its own id. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Approval } from '#durable/approvals/approval-store.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { ApprovalRequired, actionTerms } from '#kernel/task/approval.ts'
import type { Step } from '#kernel/task/task.ts'
import { eventually } from '../harness/gateway.ts'
import {
  type Admit,
  type EngineFixture,
  executed,
  type Instance,
  newUser,
  openFixture,
} from './engine-fixture.ts'

const bigSeed = Number(process.env.PROOF_SEED ?? 0)

describe('approvals', () => {
  let fixture: EngineFixture
  let instances: [Instance, Instance]
  const runs = new Map<string, number>()
  const refusals = new Map<string, Fault>()
  const onAdmission = new Map<string, () => Promise<void>>()

  const run: Step = async ({ id }) => {
    runs.set(id, (runs.get(id) ?? 0) + 1)
    return executed
  }
  /** An agent needs an approval; what a person has approved is admitted, unless the test refuses it by then. */
  const admit: Admit = async (_input, { userId, principal }) => {
    if (principal === 'person') await onAdmission.get(userId)?.()
    const refusal = refusals.get(userId)
    if (refusal) throw refusal
    const action = {
      userId,
      operation: 'test_run',
      chainId: '1',
      tokens: [],
      recipients: ['0xfriend'],
      usdMicros: 5_000_000n,
      exit: false,
      terms: actionTerms('Send 5 USDC to 0xfriend', { token: 'USDC', amount: '5', recipient: '0xfriend' }),
    }
    if (principal === 'agent' || principal === 'chat')
      throw new ApprovalRequired(action, 'approval_above_usd', 'it is above 1 USD')
    return { data: {}, first: 'run' }
  }

  before(async () => {
    fixture = await openFixture()
    const kind = { steps: { run } }
    instances = [await fixture.instance(kind, { admit }), await fixture.instance(kind, { admit })]
  })
  after(async () => fixture?.[Symbol.asyncDispose]())

  const letters = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
  let people = 0
  /** A user with a person, who signed in with OAuth. */
  const person = async (): Promise<string> => {
    const userId = newUser()
    const n = people++
    const agentId = `agt_${'0'.repeat(23)}${letters[Math.floor(n / 1024) % 32]}${letters[Math.floor(n / 32) % 32]}${letters[n % 32]}`
    await fixture.rows(
      `insert into app_user (id, agent_id, auth_scheme, created_at) values ($1, $2, 'oauth', now()) returning id`,
      userId,
      agentId,
    )
    return userId
  }
  const approvalOf = async (taskId: string): Promise<Approval> =>
    (await fixture.rows<Approval>('select * from approval where task_id = $1', taskId))[0]!
  const ask = async (userId: string, at: Instance = instances[0]) => {
    const answer = await at.run(userId, { timeoutMs: 0 })
    assert.equal(answer.status, 'pending', JSON.stringify(answer))
    return { taskId: answer.task_id, approval: await approvalOf(answer.task_id) }
  }
  const decide = (at: Instance, { approval_id: approvalId }: Approval, decision: 'approved' | 'declined') =>
    at.taskEngine
      .transact((tx) => at.taskEngine.approvals.decide(tx, { approvalId, decision, by: 'agt' }))
      .then(
        (decided) => {
          at.taskEngine.approvals.decided(decided)
          return decided.approval.decision
        },
        (error: unknown) => {
          assert.ok(error instanceof Fault && error.code === 'conflict', String(error))
          return undefined
        },
      )
  const cancel = (at: Instance, userId: string, taskId: string) =>
    at.taskEngine.tasks.cancel(userId, taskId).then(
      () => true,
      (error: unknown) => {
        assert.ok(error instanceof Fault && error.code === 'not_cancellable', String(error))
        return false
      },
    )
  /** As if the half hour had passed. */
  /** Locks the task first, as every decision does. */
  const passTime = (taskId: string) =>
    fixture.rows(
      `with locked as materialized (select id from task where id = $1 for no key update),
       over as (update approval set requested_at = now() - interval '31 minutes', expires_at = now() - interval '1 second'
         from locked where task_id = locked.id)
       update task_queue set run_at = now() from locked where task_id = locked.id returning task_id`,
      taskId,
    )

  test('what a chat starts by itself does not wait for an approval: it is refused', async () => {
    const userId = await person()
    const refused = await instances[0]
      .run(userId, { timeoutMs: 0, via: 'chat' })
      .catch((error: unknown) => error)
    assert.ok(refused instanceof Fault && refused.code === 'approval_required', String(refused))
    assert.deepEqual(await fixture.rows('select 1 from task where user_id = $1', userId), [])
  })

  test('a request waits with nothing reserved or signed, and an approval runs it once under its id', async () => {
    const userId = await person()
    const { taskId, approval } = await ask(userId)
    // A request may have been claimed any number of times.
    await fixture.rows('update task set version = version + 10 where id = $1 returning id', taskId)
    const waiting = await fixture.readTask(taskId)
    assert.deepEqual([waiting.status, waiting.state, waiting.outcome], ['pending', 'awaiting_approval', null])
    for (const table of ['policy_spend', 'transfer', 'effect', 'sponsor_charge'])
      assert.deepEqual(await fixture.rows(`select 1 from ${table} where task_id = $1`, taskId), [], table)
    assert.equal(approval.intent.text, 'Send 5 USDC to 0xfriend')
    assert.deepEqual([approval.intent.usd, approval.intent.agent_id], ['5', 'agt'])
    assert.deepEqual(
      (await instances[1].taskEngine.approvals.list([userId])).approvals.map(({ task_id }) => task_id),
      [taskId],
    )
    assert.equal(runs.get(taskId), undefined)

    assert.equal(await decide(instances[1], approval, 'approved'), 'approved')
    const ended = await fixture.waitForEnd(taskId)
    assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'])
    assert.ok(ended.version > waiting.version, 'no earlier run can commit over it')
    assert.equal(await decide(instances[0], approval, 'approved'), 'approved', 'a repetition changes nothing')
    assert.equal(await decide(instances[0], approval, 'declined'), undefined)
    assert.equal(runs.get(taskId), 1)
    assert.deepEqual(await instances[1].taskEngine.approvals.list([userId]), { approvals: [], total: 0 })
    const types = await fixture.rows<{ type: string }>(
      'select type from user_event where user_id = $1 order by seq',
      userId,
    )
    assert.deepEqual(
      types.map(({ type }) => type),
      ['task.created', 'approval.requested', 'approval.decided', 'task.updated', 'task.completed'],
    )
  })

  test('a declined request, one whose time is over, and a cancelled one execute nothing and say why', async () => {
    const userId = await person()
    const declined = await ask(userId)
    assert.equal(await decide(instances[0], declined.approval, 'declined'), 'declined')
    const expired = await ask(userId)
    await passTime(expired.taskId)
    const cancelled = await ask(userId)
    assert.equal(await cancel(instances[1], userId, cancelled.taskId), true)
    const ends = []
    for (const { taskId } of [declined, expired, cancelled]) {
      const { status, state, outcome } = await fixture.waitForEnd(taskId)
      ends.push([status, state, outcome])
      assert.equal(runs.get(taskId), undefined)
    }
    assert.deepEqual(ends, [
      ['failed', 'approval_declined', 'not_executed'],
      ['failed', 'approval_expired', 'not_executed'],
      ['cancelled', 'cancelled_by_user', 'not_executed'],
    ])
    assert.equal((await approvalOf(expired.taskId)).decision, 'expired')
    for (const { approval } of [declined, expired, cancelled])
      assert.equal(await decide(instances[0], approval, 'approved'), undefined)
  })

  test('a decision after the time or the cancellation is refused, also before the task has ended', async () => {
    const userId = await person()
    const over = await ask(userId)
    const earlier = `update approval set requested_at = now() - interval '31 minutes',
      expires_at = now() - interval '1 second' where task_id = $1 returning task_id`
    await fixture.rows(earlier, over.taskId)
    const cancelled = await ask(userId)
    await fixture.rows('update task set cancel_requested = true where id = $1 returning id', cancelled.taskId)
    for (const { approval } of [over, cancelled]) {
      assert.equal(await decide(instances[0], approval, 'approved'), undefined)
      assert.equal((await approvalOf(approval.task_id)).decision, null)
    }
  })

  test('a request that is cancelled while it is admitted does not run', async () => {
    const userId = await person()
    const { taskId, approval } = await ask(userId)
    onAdmission.set(userId, async () => {
      await fixture.rows('update task set cancel_requested = true where id = $1 returning id', taskId)
    })
    await decide(instances[0], approval, 'approved')
    const ended = await fixture.waitForEnd(taskId)
    assert.deepEqual([ended.status, ended.outcome], ['cancelled', 'not_executed'])
    assert.equal(runs.get(taskId), undefined)
  })

  test('what no longer fits when it is approved ends the task with the reason', async () => {
    const userId = await person()
    const { taskId, approval } = await ask(userId)
    refusals.set(userId, new Fault('trading_paused', 'Trading is paused by a kill switch'))
    await decide(instances[0], approval, 'approved')
    const ended = await fixture.waitForEnd(taskId)
    assert.deepEqual([ended.status, ended.state, ended.outcome], ['failed', 'trading_paused', 'not_executed'])
    assert.equal(runs.get(taskId), undefined)
  })

  test('an approved request outlasts a read that fails for a moment', async () => {
    const userId = await person()
    const { taskId, approval } = await ask(userId)
    refusals.set(userId, new Fault('unavailable', 'The node is away'))
    await decide(instances[0], approval, 'approved')
    await eventually(
      async () => (await fixture.readTask(taskId)).attempts > 0 || undefined,
      'the admission was tried',
    )
    assert.equal(await decide(instances[1], approval, 'declined'), undefined)
    assert.equal((await approvalOf(taskId)).decision, 'approved')
    refusals.delete(userId)
    assert.equal((await fixture.waitForEnd(taskId)).status, 'completed')
    assert.equal(runs.get(taskId), 1)
  })

  test('a user has at most 20 requests that wait, however many instances take them at once', async () => {
    const userId = await person()
    const answers = await Promise.allSettled(
      Array.from({ length: 26 }, (_, n) => instances[n % 2]!.run(userId, { timeoutMs: 0 })),
    )
    const accepted = answers.filter(({ status }) => status === 'fulfilled')
    assert.equal(accepted.length, 20)
    for (const answer of answers)
      if (answer.status === 'rejected') assert.equal((answer.reason as Fault).code, 'conflict')
  })

  test('where no person belongs to the agent the request is refused at once', async () => {
    await assert.rejects(instances[0].run(newUser(), { timeoutMs: 0 }), { code: 'approval_required' })
  })

  test('a request under the same key is the task that waits', async () => {
    const userId = await person()
    const first = await instances[0].run(userId, { timeoutMs: 0, key: 'once' })
    const second = await instances[1].run(userId, { timeoutMs: 1_000, key: 'once' })
    assert.equal(second.task_id, first.task_id)
    assert.deepEqual([second.status, second.state], ['pending', 'awaiting_approval'])
    assert.equal(typeof second.approval?.approval_id, 'string')
    assert.match(second.message, /Send 5 USDC to 0xfriend/)
    await decide(instances[0], await approvalOf(first.task_id), 'declined')
    await fixture.waitForEnd(first.task_id)
  })

  /** What several callers do at the same moment, on two instances. */
  const contests = [
    ['approve', 'approve'],
    ['approve', 'decline'],
    ['approve', 'cancel'],
    ['approve', 'expire'],
    ['decline', 'cancel'],
    ['approve', 'decline', 'cancel', 'expire'],
  ] as const
  for (const contest of contests)
    test(`of ${contest.join(' and ')} at the same moment one counts, and nothing runs twice`, async () => {
      const userId = await person()
      const rounds = 8
      for (let round = 0; round < rounds; round++) {
        const { taskId, approval } = await ask(userId, instances[round % 2])
        const acts = {
          approve: (at: Instance) => decide(at, approval, 'approved'),
          decline: (at: Instance) => decide(at, approval, 'declined'),
          cancel: (at: Instance) => cancel(at, userId, taskId),
          expire: () => passTime(taskId),
        }
        const order = (bigSeed + round) % 2 === 0 ? contest : [...contest].reverse()
        await Promise.all(order.map((act, n) => acts[act](instances[(n + round) % 2]!)))
        const { status, state } = await fixture.waitForEnd(taskId)
        const { decision } = await approvalOf(taskId)
        const ends = {
          approved: ['completed done', 'cancelled cancelled_by_user'],
          declined: ['failed approval_declined', 'cancelled cancelled_by_user'],
          expired: ['failed approval_expired'],
          none: ['cancelled cancelled_by_user'],
        }[decision ?? 'none']
        assert.ok(ends.includes(`${status} ${state}`), `${decision} ended as ${status} ${state}`)
        const ran = runs.get(taskId) ?? 0
        // A step that ran while its task was cancelled has committed nothing.
        const isLate = decision === 'approved' && status === 'cancelled' && ran === 1
        assert.ok(isLate || ran === (status === 'completed' ? 1 : 0), `${decision} ${status}: ${ran} runs`)
      }
    })
})
