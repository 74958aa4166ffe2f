import assert from 'node:assert/strict'
import type pg from 'pg'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { type Agent, bearer, http } from '../harness/gateway.ts'

const cancelsAtOnce = 120

/** Inserts tasks of a kind that no instance has, so that they never run. */
export async function insertUnknownTasks(db: pg.Pool, agent: Agent, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => uuidv7(new Date(), systemRandom))
  await db.query(
    `with made as (
       insert into task (id, shard, user_id, kind, kind_version, status, state, step, data, input, deadline, created_at, updated_at)
       select id, 0, (select id from app_user where agent_id = $2), 'unknown', 1, 'pending', 'accepted', 'first', '{}', '{}',
         now() + interval '1 hour', now(), now() from unnest($1::uuid[]) as t (id) returning id, user_id)
     insert into task_queue (task_id, user_id, kind, priority, run_at) select id, user_id, 'unknown@1', 1, now() from made`,
    [ids, agent.agentId],
  )
  return ids
}

type Cancels = { url: string; db: pg.Pool; agent: Agent }

/** Cancels many tasks at once; returns how long that took, and reads of as many tasks. */
export async function cancelManyTasks({
  url,
  db,
  agent,
}: Cancels): Promise<{ readsMs: number; cancelsMs: number }> {
  const cancel = (taskId: string, key?: string) =>
    http(`${url}/v1/tasks/${taskId}/cancel`, {
      method: 'POST',
      headers: { ...bearer(agent), ...(key !== undefined && { 'idempotency-key': key }) },
    })
  const ids = await insertUnknownTasks(db, agent, cancelsAtOnce)
  const readMs = performance.now()
  await Promise.all(ids.map((id) => http(`${url}/v1/tasks/${id}`, { headers: bearer(agent) })))
  const startedMs = performance.now()
  const answers = await Promise.all(ids.map((id, n) => cancel(id, n % 2 ? `cancel-${n}` : undefined)))
  const cancelsMs = Math.round(performance.now() - startedMs)
  assert.deepEqual(
    answers.filter(({ status }) => status !== 200).map(({ status, body }) => [status, body]),
    [],
  )
  const { rows } = await db.query(
    'select count(*)::integer as n from task where id = any($1) and cancel_requested',
    [ids],
  )
  assert.equal(rows[0].n, cancelsAtOnce)
  return { readsMs: Math.round(startedMs - readMs), cancelsMs }
}
