/** The life of a strategy through the command line, and through tools of MCP: from a sentence to a trade and its end. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bearer, eventually, freshGateway, http, newAgent } from '../harness/gateway.ts'
import type { Door } from '../harness/in-process-door.ts'
import { creditAtVenue, venueControl } from '../harness/venue-gateway.ts'
import { mcpDoor } from '../mcp/mcp-door.ts'
import { cliDoor } from '../proof/support/client-doors.ts'
import { operationsOf } from '../proof/support/contracts.ts'
import { personOf } from './users.ts'
import { worldOf } from './world.ts'

type Schedule = {
  schedule_id: string
  type: string
  mode: string
  status: string
  config: { asset: string; amount_usd: string }
  guards: object
  setup_checklist: { key: string; required: boolean; done: boolean }[]
  next_run_at: string | null
}
type Execution = {
  execution_id: string
  execution_type: string
  scheduled_for: string | null
  mode: string
  status: string
  outcome: string | null
  decision: { action: string; reason: string } | null
}
type Task = { task_id: string; status: string; outcome: string | null; error: object | null }
type Page<Item> = { items: Item[] }
type Transaction = { mode: string; side: string; is_exit: boolean; execution_id: string }

const sentence = 'every day at nine New York time buy 50 dollars of ETH, and stop when I am down 10 percent'
const dayMs = 86_400_000

async function tradeByDoor(gateway: Awaited<ReturnType<typeof freshGateway>>, door: Door): Promise<void> {
  const agent = await newAgent(gateway.url)
  const { evm } = await personOf(gateway.url, agent)
  const { advance } = await worldOf(gateway.world)
  const { authorization } = bearer(agent)
  const call = async <B = Schedule>(name: string, input: object = {}): Promise<B> => {
    const reply = await door(name, { ...input }, { authorization })
    assert.equal(reply.status, 200, `${name}: ${JSON.stringify(reply)}`)
    return (reply as { result: B }).result
  }
  const nowMs = async () => (await http<{ now_ms: number }>(`${gateway.world}/time`)).body.now_ms
  await creditAtVenue(venueControl(gateway.world), { evm, amount: '1000' })
  assert.equal((await call<Task>('perp_setup', { wait: true, timeout: 60 })).outcome, 'executed')

  const shown = await call('schedules_preview', { text: sentence })
  const { schedule_id, config, guards, ...made } = await call('schedules_create', { query: sentence })
  assert.deepEqual([shown.type, shown.config, shown.guards], [made.type, config, guards])
  assert.deepEqual([made.type, made.mode, made.status], ['dca', 'paper', 'draft'])
  const own = { schedule_id }
  const strategy = { type: made.type, ...config }
  const from = new Date((await nowMs()) - 3 * dayMs).toISOString()
  const tested = await call<Task>('strategies_backtest', {
    strategy,
    guards,
    from,
    schedule: 'every day at 09:00',
    wait: true,
    timeout: 90,
  })
  assert.deepEqual([tested.status, tested.error], ['completed', null])

  const ended = (execution_id: string) =>
    eventually(async () => {
      const run = await call<Execution>('schedules_execution', { execution_id })
      return run.status === 'pending' || run.status === 'running' ? undefined : run
    }, 'the end of the run')
  const does = ({ mode, status, outcome, decision }: Execution) => [mode, status, outcome, decision?.action]
  const byHand = await call<Task>('schedules_run', own)
  assert.deepEqual(does(await ended(byHand.task_id)), ['paper', 'completed', 'executed', 'enter'])

  const live = await call('schedules_update', { ...own, mode: 'live', budget_usd: '400' })
  const missing = live.setup_checklist.filter(({ required, done }) => required && !done)
  assert.deepEqual(missing, [])
  const { status, next_run_at: slot } = await call('schedules_activate', own)
  assert.equal(status, 'active')
  await advance(Math.ceil((Date.parse(slot!) - (await nowMs())) / 1_000) + 1)
  const { execution_id: run } = await eventually(
    async () =>
      (await call<Page<Execution>>('schedules_executions', own)).items.find(
        ({ scheduled_for: at }) => at === slot,
      ),
    'the run of the slot',
  )
  assert.deepEqual(does(await ended(run)), ['live', 'completed', 'executed', 'enter'])

  const disabled = await call<Record<string, string[]>>('schedules_disable', { ...own, positions: 'flatten' })
  // What is open on paper ends by an exit of its own.
  const [exit = '', onPaper = ''] = disabled.flatten_task_ids!
  assert.deepEqual([disabled.disabled, disabled.flatten_task_ids], [[schedule_id], [exit, onPaper]])
  assert.deepEqual(does(await ended(onPaper)), ['paper', 'completed', 'executed', 'exit'])
  const { execution_type: type, ...flat } = await ended(exit)
  assert.deepEqual([type, ...does(flat as Execution)], ['exit', 'live', 'completed', 'executed', 'exit'])
  assert.deepEqual((await call<{ positions: object[] }>('perp_orders')).positions, [])
  const { items: moved } = await call<Page<Transaction>>('schedules_transactions', own)
  const traded = moved.filter(({ mode }) => mode === 'live')
  assert.deepEqual([traded.at(0)?.side, traded.at(-1)?.side], ['sell', 'buy'])
  const { items: files } = await call<Page<{ execution_id: string; name: string }>>(
    'schedules_artifacts',
    own,
  )
  const ofExit = files.filter(({ execution_id: id }) => id === exit).map(({ name }) => name)
  assert.deepEqual(ofExit.toSorted(), ['equity.png', 'report.md', 'trades.csv'])
}

test('a strategy is tested, runs on paper, trades and ends by the command line, and by tools of MCP', async (t) => {
  await using gateway = await freshGateway({}, { ownWorld: 'days pass in it' })
  const doors = {
    'the command line': cliDoor(gateway.url),
    MCP: mcpDoor(await operationsOf(gateway.url), gateway.url),
  }
  for (const [name, door] of Object.entries(doors)) await t.test(name, () => tradeByDoor(gateway, door))
})
