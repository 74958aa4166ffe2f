import type pg from 'pg'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import type { Agent } from '../harness/gateway.ts'

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
