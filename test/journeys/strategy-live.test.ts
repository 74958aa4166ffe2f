/** A sentence becomes a strategy that trades: over HTTP alone, at slots to which the world advances. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { eventually, freshGateway, newAgent } from '../harness/gateway.ts'
import { creditAtVenue, venueControl } from '../harness/venue-gateway.ts'
import { type Execution, type Page, paperTrader, type Schedule } from './strategy-paper.ts'
import { personOf } from './users.ts'

type Live = Schedule & {
  config: { asset: string; amount_usd: string }
  guards: object
  compiled: { operations: string[]; notes: string[] }
  setup_checklist: { key: string; required: boolean; done: boolean }[]
  budget_spent_usd: string
  position: { asset: string; mode: string }[]
}
type Task = { task_id: string; status: string; outcome: string | null; error: object | null }
type Transaction = {
  mode: string
  side: string
  amount_usd: string
  tx_hash: string | null
  is_exit: boolean
  reason: string
}
type Artifact = { execution_id: string; name: string; url: string }
type Event = { type: string; data: { schedule_id?: string; skip_reason?: string } }

const sentence = 'every day at nine New York time buy 50 dollars of ETH, and stop when I am down 10 percent'
const dayMs = 86_400_000

test('a sentence is tested, runs on paper, trades at three slots, is changed, and ends flat', async () => {
  await using gateway = await freshGateway({}, { ownWorld: 'days pass in it' })
  const venue = venueControl(gateway.world)
  await venue('POST', '/price', { coin: 'ETH', price: 3_000 })
  const agent = await newAgent(gateway.url)
  const { evm } = await personOf(gateway.url, agent)
  const { call, ...trader } = await paperTrader(gateway, agent)
  await creditAtVenue(venue, { evm, amount: '20' })
  assert.equal((await call<Task>('POST /v1/perp/setup?wait=true&timeout=60', {})).outcome, 'executed')

  const made = await call<Live>('POST /schedule_chat', { query: sentence })
  assert.deepEqual([made.type, made.mode, made.status], ['dca', 'paper', 'draft'])
  assert.match(made.compiled.notes.join(), /perpetual positions at leverage 1.*no tokens/)
  const { config, guards } = made
  const path = `/schedule-chat/schedule/${made.schedule_id}`
  const missing = ({ setup_checklist: items }: Live) =>
    items.filter(({ required, done }) => required && !done).map(({ key }) => key)

  const live = { schedule_id: made.schedule_id, mode: 'live', budget_usd: '400' }
  const asked = await call<Live>('PUT /update_schedule_chat', live)
  assert.deepEqual(missing(asked), ['backtest_done', 'paper_done'])
  const from = new Date((await trader.nowMs()) - 5 * dayMs).toISOString()
  const strategy = { type: 'dca', ...config }
  const tested = await call<Task>('POST /v1/strategies/backtest?wait=true&timeout=90', {
    strategy,
    guards,
    from,
    schedule: 'every day at 09:00',
  })
  assert.deepEqual([tested.status, tested.error], ['completed', null])
  await call('PUT /update_schedule_chat', { schedule_id: made.schedule_id, mode: 'paper' })
  const { task_id: paperRun } = await call<Task>(`POST ${path}/run`)
  const ended = (id: string) =>
    eventually(async () => {
      const run = await call<Execution>(`GET /schedule-chat/execution/${id}`)
      return run.status === 'pending' || run.status === 'running' ? undefined : run
    }, 'the end of the run')
  const onPaper = await ended(paperRun)
  assert.deepEqual([onPaper.status, onPaper.mode, onPaper.decision?.action], ['completed', 'paper', 'enter'])

  const promoted = await call<Live>('PUT /update_schedule_chat', live)
  assert.deepEqual(missing(promoted), [])
  assert.equal((await call<Live>(`POST ${path}/activate`)).status, 'active')
  for (const _ of [1, 2]) {
    const { skip_reason: reason, status } = await trader.passSlot(made)
    assert.deepEqual([status, reason], ['cancelled', 'insufficient_balance'])
  }
  const events = async () => (await call<{ events: Event[] }>('GET /v1/notifications?limit=100')).events
  const skips = (await events()).filter(({ type }) => type === 'schedule.run_skipped')
  assert.deepEqual(
    skips.map(({ data }) => data.skip_reason),
    ['insufficient_balance'],
    'an empty wallet is reported once',
  )
  await creditAtVenue(venue, { evm, amount: '1000' })
  for (const _ of [1, 2, 3]) {
    const run = await trader.passSlot(made)
    assert.deepEqual(
      [run.status, run.outcome, run.mode, run.decision?.action],
      ['completed', 'executed', 'live', 'enter'],
      JSON.stringify(run),
    )
  }

  const transactions = async () =>
    (await call<Page<Transaction>>(`GET ${path}/transactions?limit=100`)).items.filter(
      ({ mode }) => mode === 'live',
    )
  const bought = await eventually(async () => {
    const items = await transactions()
    return items.every(({ tx_hash: hash }) => hash !== null) ? items : undefined
  }, 'the hashes of the fills')
  assert.ok(bought.every(({ side, is_exit, reason }) => side === 'buy' && !is_exit && reason === 'due'))
  const spent = bought.reduce((sum, { amount_usd: usd }) => sum + Number(usd), 0)
  assert.ok(spent > 3 * 49 && spent <= 3 * 50, `${spent} USD`)
  const held = await call<Live>(`GET ${path}`)
  assert.ok(Math.abs(Number(held.budget_spent_usd) - spent) < 0.01, held.budget_spent_usd)
  assert.deepEqual(held.position.map(({ asset, mode }) => `${asset} ${mode}`).sort(), [
    'ETH live',
    'ETH paper',
  ])

  const edited = await call<Live>('PUT /update_schedule_chat', {
    schedule_id: made.schedule_id,
    config: { ...config, amount_usd: '60' },
  })
  assert.deepEqual([edited.version, edited.status], [promoted.version + 1, 'paused'])
  assert.deepEqual(missing(edited), ['backtest_done', 'paper_done'])
  const { flatten_task_ids: exits } = await call<{ flatten_task_ids: string[] }>(
    'PUT /disable_schedule_chats',
    { schedule_id: made.schedule_id, positions: 'flatten' },
  )
  const ends = await Promise.all(exits.map(ended))
  assert.deepEqual(
    ends.map(({ mode, status, outcome, execution_type: type }) => [mode, status, outcome, type]),
    ['live', 'paper'].map((mode) => [mode, 'completed', 'executed', 'exit']),
  )
  const flat = await call<Live>(`GET ${path}`)
  assert.deepEqual(flat.position, [])
  const { positions } = await call<{ positions: object[] }>('GET /v1/perp/orders')
  assert.deepEqual(positions, [])
  assert.ok((await transactions()).some(({ is_exit, side }) => is_exit && side === 'sell'))

  const files = (await call<Page<Artifact>>(`GET ${path}/artifacts`)).items
  const picture = files.find(({ execution_id: run, name }) => run === exits[0] && name === 'equity.png')
  const png = Buffer.from(await (await fetch(picture!.url)).arrayBuffer())
  assert.equal(png.subarray(1, 4).toString(), 'PNG')
  const { PORTICO_TEST_PICTURE: file } = process.env
  // Only a person sees whether a picture is right.
  if (file) writeFileSync(file, png)
  await trader.advanceTo((await trader.nowMs()) + 2 * dayMs)
  assert.equal((await call<Live>(`GET ${path}`)).status, 'disabled')
  assert.equal((await trader.executions(made))[0]?.execution_id, exits[1])
})
