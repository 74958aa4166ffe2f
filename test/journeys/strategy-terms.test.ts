/** Strategies over HTTP: from a sentence or a configuration to one that trades, with what is refused on the way. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually, freshGateway, newAgent } from '../harness/gateway.ts'
import { personWithApp } from './signed-in.ts'
import { type Person, personOf } from './users.ts'

type Item = { key: string; required: boolean; done: boolean; how: string | null }
type Schedule = {
  schedule_id: string
  version: number
  type: string
  mode: string
  query: string
  config: Record<string, unknown> | null
  guards: Record<string, unknown>
  budget_usd: string | null
  paper_balance_usd: string | null
  schedule: { type: string; timezone: string; every_seconds?: number; days?: string[]; times?: string[] }
  next_runs: string[]
  compiled: { operations: string[]; per_run_max_usd: string; per_day_max_usd: string }
  setup_checklist: Item[]
  credits_per_run: number
  status: string
  status_reason: string | null
}
type Farming = {
  version: number
  enabled: boolean
  farming_config: Record<string, unknown>
  effective_leverage: number
  clipped_by: string | null
  per_day_max_usd: string
  status: string
  next_runs: string[]
}
type Refusal = { code: string; detail: { loc: string[]; type: string; ctx?: Record<string, unknown> }[] }
type Conflict = { code: string; missing?: string[]; schedule_id?: string; type?: string; requires?: string }

const sentence =
  'every Monday at nine New York time buy 20 dollars of ETH, and stop when I am down 10 percent'
const dca = {
  type: 'dca',
  config: { asset: 'ETH', amount_usd: '20' },
  schedule: 'every Monday at 09:00 New York time',
}
const farming = { type: 'day_trade_farming', config: { asset: 'hl:perp:BTC', order_notional_usd: '200' } }

describe('a strategy', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  before(async () => {
    gateway = await freshGateway()
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const newUser = async () => personOf(gateway.url, await newAgent(gateway.url))
  const created = async (user: Person, body: object): Promise<Schedule> => {
    const answer = await user.call<Schedule>('POST /schedule_chat', { body })
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    return answer.body
  }
  const update = <B = Schedule>(
    user: Person,
    { schedule_id }: Pick<Schedule, 'schedule_id'>,
    fields: object,
  ) => user.call<B>('PUT /update_schedule_chat', { body: { schedule_id, ...fields } })
  const path = ({ schedule_id }: Pick<Schedule, 'schedule_id'>, verb: string) =>
    `/schedule-chat/schedule/${schedule_id}${verb}`
  const refusedBy = async (answer: Promise<{ status: number; body: Refusal }>) => {
    const { status, body } = await answer
    assert.equal(status, 422, JSON.stringify(body))
    const [issue] = body.detail
    return [issue?.loc.slice(1).join('.'), issue?.type] as const
  }
  const missingOf = ({ setup_checklist: items }: Schedule) =>
    items.filter(({ required, done }) => required && !done).map(({ key }) => key)

  const bounds = { mode: 'live', guards: { max_loss_usd: '50' }, budget_usd: '400' }
  const backtest = async (user: Pick<Person, 'call'>, config: object) => {
    const from = new Date(Date.now() - 3 * 86_400_000).toISOString()
    const { guards } = bounds
    const body = { strategy: { type: 'dca', ...config }, guards, from, schedule: 'every day at 09:00' }
    const { body: task } = await user.call<{ status: string; error: object | null }>(
      'POST /v1/strategies/backtest?wait=true&timeout=90',
      { body },
    )
    assert.deepEqual([task.status, task.error], ['completed', null])
  }
  /** A purchase of ETH that has run on paper, and now waits to trade. */
  const readyToTrade = async (user: Person): Promise<Schedule> => {
    const made = await created(user, { ...dca, guards: bounds.guards })
    const { body: run } = await user.call<{ task_id: string }>(`POST ${path(made, '/run')}`)
    const ended = await eventually(async () => {
      const { body } = await user.call<{ status: string; mode: string; decision: { action: string } | null }>(
        `GET /schedule-chat/execution/${run.task_id}`,
      )
      return body.status === 'pending' || body.status === 'running' ? undefined : body
    }, 'the run on paper')
    assert.deepEqual([ended.status, ended.mode, ended.decision?.action], ['completed', 'paper', 'enter'])
    return (await update(user, made, bounds)).body
  }

  test('is made from a sentence, which a preview shows before', async () => {
    const user = await newUser()
    const { body: shown } = await user.call<Schedule>(
      `GET /schedule-chat/preview?${new URLSearchParams({ text: sentence })}`,
    )
    const made = await created(user, { query: sentence })
    for (const { type, config, guards, schedule, compiled, query } of [shown, made]) {
      assert.deepEqual([type, query], ['dca', 'buy 20 dollars of ETH'])
      assert.deepEqual([config, guards], [dca.config, { max_drawdown_pct: '10' }])
      assert.deepEqual(
        [schedule.timezone, schedule.days, schedule.times],
        ['America/New_York', ['mon'], ['09:00']],
      )
      assert.deepEqual([compiled.per_run_max_usd, compiled.per_day_max_usd], ['20', '20'])
      assert.deepEqual(compiled.operations, ['perp_open', 'perp_close'])
    }
    assert.deepEqual([made.mode, made.status, made.credits_per_run], ['paper', 'draft', 0])
    assert.deepEqual([made.paper_balance_usd, made.budget_usd], ['1000', null])
    assert.deepEqual(missingOf(made), [])
    const active = await user.call<Schedule>(`POST ${path(made, '/activate')}`)
    assert.deepEqual([active.status, active.body.status], [200, 'active'])
    const listed = await user.call<{ items: Schedule[] }>('GET /get_schedule_chats?filter_type=dca')
    assert.deepEqual(
      listed.body.items.map(({ schedule_id }) => schedule_id),
      [made.schedule_id],
    )
    const prompts = await user.call<{ items: Schedule[] }>('GET /get_schedule_chats?filter_type=prompt')
    assert.deepEqual(prompts.body.items, [])
  })

  test('is made from other sentences as well, and what is no strategy stays a chat', async () => {
    const user = await newUser()
    const entry = await created(user, {
      query: 'long 100 dollars of BTC on the 4 hour chart when RSI is below 30, at most 2 trades a day',
    })
    assert.deepEqual(
      [entry.type, entry.schedule.type, entry.schedule.every_seconds],
      ['condition', 'interval', 14_400],
    )
    for (const at of entry.next_runs) assert.equal(Date.parse(at) % 14_400_000, 0)
    assert.equal(entry.guards.max_trades_per_day, 2)
    assert.equal(entry.compiled.per_day_max_usd, '200')
    const chat = await created(user, { query: 'every Monday at 09:00 buy 20 dollars of eth on base' })
    assert.deepEqual([chat.type, chat.mode, chat.config], ['prompt', 'live', null])
    const asked = await created(user, {
      ...dca,
      type: 'prompt',
      config: undefined,
      query: 'buy 20 dollars of ETH',
    })
    assert.equal(asked.type, 'prompt')
    const refused = await user.call<Refusal>('POST /schedule_chat', {
      body: {
        query: 'every Monday at 09:00 buy 20 dollars of eth on base and stop when I am down 10 percent',
      },
    })
    const { loc, type, ctx } = refused.body.detail[0]!
    assert.deepEqual(
      [refused.status, loc, type, ctx?.unread],
      [422, ['body', 'query'], 'not_understood', ['on base']],
    )
    assert.equal((ctx!.examples as string[]).length, 3)
    const open = await user.call<{ unread: string[]; questions: string[]; query: null }>(
      `GET /schedule-chat/preview?${new URLSearchParams({ text: 'daily at 9 buy $20 of eth on base, stop after 3 losses' })}`,
    )
    assert.deepEqual([open.status, open.body.unread, open.body.query], [200, ['on base'], null])
  })

  test('is made from a configuration and edited, each edit another version', async () => {
    const user = await newUser()
    const made = await created(user, { ...dca, budget_usd: '500', guards: { daily_loss_usd: 12.5 } })
    assert.deepEqual([made.query, made.budget_usd], ['Buy ETH for 20 USD', '500'])
    assert.deepEqual(made.guards, { daily_loss_usd: '12.5' })
    const same = await update(user, made, { config: dca.config })
    assert.deepEqual([same.status, same.body.version], [200, 1])
    const more = { config: { asset: 'eth', amount_usd: '30.50', max_price: 9_000 } }
    for (const _ of [1, 2]) {
      const { body } = await update(user, made, more)
      assert.deepEqual([body.version, body.query], [2, 'Buy ETH for 30.5 USD'])
      assert.deepEqual(body.config, { asset: 'ETH', amount_usd: '30.5', max_price: '9000' })
      assert.deepEqual([body.guards, body.schedule.days], [{ daily_loss_usd: '12.5' }, ['mon']])
    }
    const worded = (await update(user, made, { query: 'every day at 8 buy 40 dollars of SOL' })).body
    assert.deepEqual([worded.version, worded.config], [3, { asset: 'SOL', amount_usd: '40' }])
    assert.deepEqual([worded.schedule.days, worded.schedule.times], [undefined, ['08:00']])
    const stale = await update<Conflict>(user, made, { config: dca.config, expected_version: 1 })
    assert.deepEqual([stale.status, stale.body.code], [409, 'conflict'])
    const refusals: [fields: object, field: string, type: string][] = [
      [{ type: 'prompt' }, 'type', 'value_error'],
      [{ query: 'day trade BTC with 200 dollars' }, 'type', 'value_error'],
      [{ query: 'sing me a song' }, 'query', 'not_understood'],
      [{ config: { asset: 'ETH' } }, 'config.amount_usd', 'missing'],
      [{ schedule: { type: 'interval', every_seconds: 59 } }, 'schedule', 'least_interval'],
      [{ agent: 'ProAgent' }, 'agent', 'extra_forbidden'],
    ]
    for (const [fields, field, type] of refusals)
      assert.deepEqual(
        await refusedBy(update<Refusal>(user, made, fields)),
        [field, type],
        JSON.stringify(fields),
      )
    assert.equal(
      (await update(user, made, { schedule: { type: 'interval', every_seconds: 60 } })).status,
      200,
    )
  })

  test('keeps a configuration within bounds', async () => {
    const user = await newUser()
    const make = (body: object) => user.call<Refusal>('POST /schedule_chat', { body })
    const refusals: [fields: object, field: string, type: string][] = [
      [{ ...dca, config: { ...dca.config, amount_usd: '9.99' } }, 'config.amount_usd', 'below_minimum'],
      [{ ...dca, config: { ...dca.config, amount_usd: '1000001' } }, 'config.amount_usd', 'less_than_equal'],
      [{ ...dca, config: { ...dca.config, amount_usd: '0' } }, 'config.amount_usd', 'greater_than'],
      [{ ...dca, config: { ...dca.config, asset: 'NOPE' } }, 'config.asset', 'unsupported_asset'],
      [{ ...dca, config: { ...dca.config, amount: '20' } }, 'config.amount', 'extra_forbidden'],
      [{ ...dca, budget_usd: '0' }, 'budget_usd', 'greater_than'],
      [
        { ...farming, config: { ...farming.config, order_size: '1' } },
        'config.order_notional_usd',
        'exactly_one_of',
      ],
      [
        { ...farming, config: { ...farming.config, slippage_pct: '10.01' } },
        'config.slippage_pct',
        'less_than_equal',
      ],
      [
        { type: farming.type, config: { asset: 'BTC', order_size: '0.00001' } },
        'config.order_size',
        'below_minimum',
      ],
      [{ ...farming, schedule: 'every hour' }, 'schedule', 'extra_forbidden'],
      [
        {
          ...dca,
          type: 'rebalance',
          config: {
            targets: [
              { asset: 'BTC', share_pct: 60 },
              { asset: 'btc', share_pct: 1 },
            ],
          },
        },
        'config.targets',
        'value_error',
      ],
      [
        {
          ...dca,
          type: 'rebalance',
          config: {
            targets: [
              { asset: 'BTC', share_pct: 60 },
              { asset: 'NOPE', share_pct: 1 },
            ],
          },
        },
        'config.targets.1.asset',
        'unsupported_asset',
      ],
      [{ query: 'every day at 8 buy 5 dollars of ETH' }, 'query', 'below_minimum'],
    ]
    for (const [fields, field, type] of refusals)
      assert.deepEqual(await refusedBy(make(fields)), [field, type], JSON.stringify(fields))
    assert.equal((await user.call<{ total: number }>('GET /get_schedule_chats')).body.total, 0)
  })

  test('trades only once each item is done, and keeps its bounds while it is live', async () => {
    const user = await newUser()
    const made = await created(user, dca)
    const live = (await update(user, made, { mode: 'live' })).body
    assert.deepEqual([live.version, live.mode, live.status], [2, 'live', 'draft'])
    const all = ['backtest_done', 'paper_done', 'loss_guard', 'budget_set']
    assert.deepEqual(missingOf(live), all)
    const activate = <B = Conflict>(body: object = {}) =>
      user.call<B>(`POST ${path(made, '/activate')}`, { body })
    const refused = await activate()
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.missing],
      [409, 'setup_incomplete', all],
    )
    const unchanged = (await update(user, made, { status: 'active' })).body
    assert.deepEqual([unchanged.status, unchanged.version], ['draft', 2])
    assert.match(unchanged.status_reason ?? '', /^incomplete: Not activated\. Run `strategies_backtest`/)
    const run = await user.call<Conflict>(`POST ${path(made, '/run')}`)
    assert.deepEqual([run.status, run.body.code], [409, 'conflict'])
    const bounded = (await update(user, made, { guards: { max_loss_usd: '50' }, budget_usd: '400' })).body
    assert.deepEqual(missingOf(bounded), ['backtest_done', 'paper_done'])
    assert.deepEqual(await refusedBy(update<Refusal>(user, made, { guards: {} })), ['guards', 'value_error'])
    assert.deepEqual(await refusedBy(update<Refusal>(user, made, { guards: { max_trades_per_day: 1 } })), [
      'guards',
      'value_error',
    ])
    assert.deepEqual(await refusedBy(update<Refusal>(user, made, { budget_usd: null })), [
      'budget_usd',
      'value_error',
    ])
    await backtest(user, { asset: 'ETH', amount_usd: '21' })
    assert.deepEqual((await activate()).body.missing, ['backtest_done', 'paper_done'])
    await backtest(user, { asset: 'hl:perp:ETH', amount_usd: '20.00' })
    assert.deepEqual((await activate()).body.missing, ['paper_done'])
    const alone = await activate({ waive_paper: true })
    assert.deepEqual(
      [alone.status, alone.body.code, alone.body.requires],
      [403, 'step_up_required', 'person'],
    )
    const paper = (await update(user, made, { mode: 'paper' })).body
    assert.deepEqual([paper.mode, missingOf(paper)], ['paper', []])
    assert.deepEqual(await refusedBy(activate<Refusal>({ waive_paper: true })), [
      'waive_paper',
      'value_error',
    ])
    assert.equal((await activate<Schedule>()).body.status, 'active')
    const edited = (await update(user, made, { guards: { max_loss_usd: '40' } })).body
    assert.equal(edited.status, 'paused')
  })

  test('freqtrade #8666, #9782: trades after a backtest and a run on paper, and alone in its market', async () => {
    const user = await newUser()
    const [first, second] = [await readyToTrade(user), await readyToTrade(user)]
    assert.deepEqual(missingOf(first), ['backtest_done'])
    await backtest(user, dca.config)
    const act = <B = Schedule & Conflict>({ schedule_id }: Schedule, verb: string) =>
      user.call<B>(`POST ${path({ schedule_id }, verb)}`)
    const active = await act(first, '/activate')
    assert.deepEqual([active.status, active.body.status], [200, 'active'], JSON.stringify(active.body))
    assert.deepEqual(missingOf(active.body), [])
    const refused = await act(second, '/activate')
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.schedule_id],
      [409, 'asset_in_use', first.schedule_id],
    )
    const shown = (await user.call<Schedule>(`GET ${path(second, '')}`)).body
    assert.match(
      shown.setup_checklist.find(({ key }) => key === 'asset_free')?.how ?? '',
      new RegExp(first.schedule_id),
    )
    assert.equal((await act(first, '/pause')).status, 200)
    const races = await Promise.all([act(second, '/activate'), act(first, '/activate')])
    assert.deepEqual(races.map(({ status }) => status).toSorted(), [200, 409])
    const owner = races[0].status === 200 ? second : first
    const other = owner === second ? first : second
    const { schedule_id } = owner
    await user.call('PUT /disable_schedule_chats', { body: { schedule_id, positions: 'flatten' } })
    assert.equal((await act(other, '/activate')).body.status, 'active')
    const tightened = await update(user, other, { guards: { max_loss_usd: '40' }, status: 'active' })
    assert.deepEqual([tightened.body.status, tightened.body.version], ['active', 3])
  })

  test('trades without a run on paper only if the person of the account says so on the page', async () => {
    const { person, app } = await personWithApp(gateway)
    const made = await created(app, { ...dca, ...bounds })
    await backtest(app, dca.config)
    const activate = () =>
      app.call<{ approval?: { approval_id: string } }>(`POST ${path(made, '/activate')}`, {
        body: { waive_paper: true },
      })
    const asked = await activate()
    assert.equal(asked.status, 200, JSON.stringify(asked.body))
    const approvalId = asked.body.approval!.approval_id
    assert.equal((await activate()).body.approval?.approval_id, approvalId)
    const statusOf = async () => (await app.call<Schedule>(`GET ${path(made, '')}`)).body.status
    assert.equal(await statusOf(), 'draft')
    await person.decide(approvalId)
    await eventually(async () => (await statusOf()) === 'active' || undefined, 'the activation')
  })

  test('of day trades is shown and set in the form of the interface', async () => {
    const user = await newUser()
    const made = await created(user, farming)
    assert.deepEqual([made.schedule.type, made.schedule.every_seconds], ['interval', 900])
    assert.equal(made.compiled.per_day_max_usd, '600')
    const route = path(made, '/day-trade-farming')
    const shown = (await user.call<Farming>(`GET ${route}`)).body
    assert.deepEqual(shown.farming_config, {
      chain_id: 'hyperliquid',
      asset: 'hl:perp:BTC',
      order_notional_usd: 200,
      order_notional_usd_decimal: '200',
      order_size: null,
      order_size_decimal: null,
      leverage: 1,
      is_cross: true,
      slippage_pct: 0.5,
      tp_is_market: true,
      sl_is_market: true,
    })
    assert.deepEqual([shown.enabled, shown.effective_leverage, shown.clipped_by], [false, 1, null])
    const put = <B = Farming>(body: object) => user.call<B>(`PUT ${route}`, { body })
    const wanted = { asset: 'SOL', order_size: '2.5', leverage: 50, is_cross: false, slippage_pct: 0.25 }
    for (const _ of [1, 2]) {
      const { status, body } = await put({ enabled: true, farming_config: wanted })
      assert.deepEqual([status, body.version, body.enabled, body.status], [200, 2, true, 'active'])
      const { asset, order_size_decimal, slippage_pct, is_cross } = body.farming_config
      assert.deepEqual(
        [asset, order_size_decimal, slippage_pct, is_cross],
        ['hl:perp:SOL', '2.5', 0.25, false],
      )
      assert.ok(body.effective_leverage < 50)
      assert.deepEqual([body.clipped_by, body.next_runs.length], ['market', 3])
    }
    const rests = (await put({ enabled: false, farming_config: wanted })).body
    assert.deepEqual([rests.version, rests.enabled, rests.status], [2, false, 'draft'])
    const refusals: [body: object, field: string, type: string][] = [
      [{ enabled: true, farming_config: {} }, 'farming_config.order_notional_usd', 'exactly_one_of'],
      [
        { enabled: true, farming_config: { asset: 'HYPE', order_size: 9 } },
        'farming_config.asset',
        'unsupported_asset',
      ],
      [
        { enabled: true, farming_config: { chain_id: 'base', order_size: 9 } },
        'farming_config.chain_id',
        'value_error',
      ],
      [
        { enabled: true, farming_config: { ...wanted, leverage: 51 } },
        'farming_config.leverage',
        'less_than_equal',
      ],
      [{ farming_config: wanted }, 'enabled', 'missing'],
    ]
    for (const [body, field, type] of refusals)
      assert.deepEqual(await refusedBy(put<Refusal>(body)), [field, type], JSON.stringify(body))
    const other = path(await created(user, dca), '/day-trade-farming')
    const refused = await user.call<Conflict>(`GET ${other}`)
    assert.deepEqual([refused.status, refused.body.code, refused.body.type], [409, 'conflict', 'dca'])
    const stranger = await newUser()
    assert.equal((await stranger.call(`GET ${route}`)).status, 404)
    assert.equal(
      (await stranger.call(`PUT ${route}`, { body: { enabled: true, farming_config: wanted } })).status,
      404,
    )
  })

  test('is disabled with what it has open, which is nothing before its first run', async () => {
    const user = await newUser()
    const { schedule_id } = await created(user, { ...farming, status: 'active' })
    const disable = () =>
      user.call('PUT /disable_schedule_chats', { body: { schedule_id, positions: 'flatten' } })
    const nothing = { not_found: [], flatten_task_ids: [] }
    assert.deepEqual((await disable()).body, { disabled: [schedule_id], already: [], ...nothing })
    assert.deepEqual((await disable()).body, { disabled: [], already: [schedule_id], ...nothing })
  })
})
