/** kill -9 at the boundaries of the statements of a run on paper: one decision, its orders filled once. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { authorityFields } from '../chat/schedule-fixture.ts'
import { type Agent, eventually, type Gateway, newAgent } from '../harness/gateway.ts'
import { isNightly } from '../proof/support/seed.ts'
import { addStrategyRow, newId } from '../venue/strategy-rows.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { killAtEach, recordPoints } from './failpoints.ts'

const pointPattern =
  /^(db:(task_accept|task_step|insert strategy_decision|update strategy_account|insert strategy_fill|update paper_levels|update strategy_execution|update strategy|commit)|net:hyperliquid)/
const passesOf = (name: string) => (isNightly ? 20 : /task_step|commit/.test(name) ? 3 : 1)

let app: CrashApp
let survivor: Gateway
let user: Agent
let strategyId: string
let runs = 0

before(async () => {
  app = await createCrashApp()
  survivor = await app.gateway()
  user = await newAgent(survivor.url)
  const { rows } = await app.admin.query<{ id: string }>('select id from app_user where agent_id = $1', [
    user.agentId,
  ])
  strategyId = newId()
  await addStrategyRow(app.admin, {
    id: strategyId,
    userId: rows[0]!.id,
    type: 'dca',
    config: { asset: 'ETH', amount_usd: '20' },
    paperUsd: '100000',
    authority: authorityFields(user),
  })
})
after(async () => {
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

type Recorded = { id: string; status: string; outcome: string; decisions: string; fills: string }
const runOf = async (slot: Date): Promise<Recorded[]> =>
  (
    await app.admin.query<Recorded>(
      `select e.id, e.status, e.outcome,
         (select count(*) from strategy_decision d where d.execution_id = e.id) as decisions,
         (select count(*) from strategy_fill f where f.strategy_id = e.strategy_id and f.execution_id = e.id) as fills
       from strategy_execution e where e.strategy_id = $1 and e.slot = $2`,
      [strategyId, slot],
    )
  ).rows

/** Serves a slot at the victim alone, and completes it at the survivor. */
async function runAt(victim: Gateway): Promise<Date> {
  survivor.child.kill('SIGSTOP')
  const slot = new Date()
  await app.admin.query(
    `update strategy set status = 'active', next_at = $2, following_at = null where id = $1`,
    [strategyId, slot],
  )
  const isOver = ([run]: Recorded[]) =>
    run !== undefined && run.status !== 'pending' && run.status !== 'running'
  const isDead = () => victim.child.exitCode !== null || victim.child.signalCode !== null
  await eventually(
    async () => isOver(await runOf(slot)) || isDead() || undefined,
    'the end of the run or of the victim',
  ).finally(() => survivor.child.kill('SIGCONT'))
  await eventually(async () => isOver(await runOf(slot)) || undefined, 'the end of the run')
  runs++
  return slot
}

async function assertRun(slot: Date, at: string): Promise<void> {
  const found = await runOf(slot)
  assert.deepEqual(
    found.map(({ status, outcome, decisions, fills }) => [status, outcome, decisions, fills]),
    [['completed', 'executed', '1', '1']],
    at,
  )
  const { rows } = await app.admin.query<{ bought: string; held: string; spent: string; worth: string }>(
    `select (select sum(size) * 10000 from strategy_fill where strategy_id = $1)::bigint::text as bought,
       state #>> '{positions,ETH,size}' as held, state ->> 'spent' as spent, state #>> '{positions,ETH,cost}' as worth
     from strategy_account where strategy_id = $1`,
    [strategyId],
  )
  assert.equal(rows[0]?.bought, rows[0]?.held, at)
  assert.equal(rows[0]?.spent, rows[0]?.worth, at)
}

const needed = [/^db:insert strategy_decision:after/, /^db:insert strategy_fill:after/, /^db:task_step:after/]

test('a run on paper whose gateway is killed at any point decides once and buys once', async (t) => {
  const points = await recordPoints({
    pattern: pointPattern,
    passesOf,
    needed,
    shortPoint: 'db:insert strategy_fill:after',
    launch: app.gateway,
    work: async (gateway, attempt) => assertRun(await runAt(gateway), attempt),
  })
  const reached = await killAtEach(
    points,
    app.gateway,
    async (point, victim) => {
      victim.child.kill('SIGUSR2')
      const slot = await runAt(victim)
      const died = victim.child.signalCode === 'SIGKILL'
      await victim.kill()
      await assertRun(slot, point)
      return died
    },
    { startsAhead: false },
  )
  t.diagnostic(`${reached}, ${runs} runs`)
})
