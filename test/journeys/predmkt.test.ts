import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually, freshGateway, http } from '../harness/gateway.ts'
import { createFundedPerson, type Person, type TaskBody } from './users.ts'
import { base, polygon, solana, type World, worldOf } from './world.ts'

type Ended = Omit<TaskBody, 'result'> & {
  result: Record<string, string> & Record<string, unknown>
  detail?: unknown
}
type Market = {
  condition_id: string
  slug: string
  protocol: string
  neg_risk: boolean
  outcomes: { outcome_id: string; outcome: string; price: string }[]
}
type Quote = {
  quote_id: string
  shares: string
  total_usd: string
  fee_usd: string
  worst_price: string
  complete: boolean
}
type Position = {
  outcome_id: string
  size: string
  unsettled_buy: string
  cost_usd: string | null
  unrealized_usd: string | null
  redeemable: boolean
}
type Holding = Record<'kind' | 'symbol' | 'amount' | 'balance' | 'token_address', string> & {
  protocol: string | null
  outcome_id: string | null
  cost_basis_usd: string | null
  value_usd: string | null
}
type Order = { id: string; status: string; size_matched: string; price: string }
type Status = {
  setup_complete: boolean
  trading: string
  trading_until: string | null
  safe_address: string
  spendable_cash_usd: string
  steps: { key: string; done: boolean }[]
  protocols: { v1: boolean; v2: boolean }
}

const micros = (usd: string): bigint => {
  const [whole = '0', fraction = ''] = usd.split('.')
  return BigInt(whole + fraction.padEnd(6, '0'))
}

describe('a user trades prediction markets by HTTP alone, without a coin for gas', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway(
      { RATE_MONEY: '0', RATE_EXIT: '0', SPONSOR_USER_DAY: '1' },
      { ownWorld: 'the markets of this one are resolved' },
    )
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const venue = async <B = object>(method: string, path: string, body?: object): Promise<B> => {
    const reply = await http<B>(`${gateway.world}/venues/polymarket${path}`, {
      method,
      ...(body && { body }),
    })
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    return reply.body
  }
  const run = async (person: Person, route: string, body: object = {}): Promise<Ended> => {
    const { status, body: task } = await person.call<Ended>(`POST ${route}?wait=true&timeout=60`, { body })
    assert.equal(status, 200, JSON.stringify(task))
    const last = async () => JSON.stringify((await person.call(`GET /v1/tasks/${task.task_id}`)).body)
    return (await person.ended(task.task_id).catch(async (error: Error) => {
      throw new Error(`${error.message}: ${await last()}`, { cause: error })
    })) as unknown as Ended
  }
  const executed = async (person: Person, route: string, body: object = {}): Promise<Ended> => {
    const task = await run(person, route, body)
    assert.deepEqual([task.status, task.outcome], ['completed', 'executed'], JSON.stringify(task))
    return task
  }
  const statusOf = async (person: Person) => (await person.call<Status>('GET /predmkt/setup/status')).body
  const cashOf = async (person: Person) => micros((await statusOf(person)).spendable_cash_usd)
  const positionOf = async (person: Person, outcomeId: string) =>
    (await person.call<{ positions: Position[] }>('GET /predmkt/positions')).body.positions.find(
      ({ outcome_id }) => outcome_id === outcomeId,
    )
  const atVenue = async (person: Person) => {
    const { body } = await person.call<{ holdings: Holding[] }>('GET /v1/holdings?event=wallet-refresh')
    return body.holdings.filter(({ protocol }) => protocol === 'polymarket')
  }
  /** Moves shares between wallets at the venue without the gateway, as if the key were used elsewhere. */
  const moveShares = async (from: string, to: string, shares: Holding) => {
    const url = world.manifest.urls.evm[polygon]
    const word = (hex: string) => hex.replace('0x', '').toLowerCase().padStart(64, '0')
    const number = (value: string | number) => word(BigInt(value).toString(16))
    const data = `0xf242432a${word(from)}${word(to)}${number(shares.outcome_id!)}${number(shares.amount)}${number(160)}${number(0)}`
    await world.rpc('anvil_setBalance', [from, '0xde0b6b3a7640000'], url)
    await world.rpc('anvil_impersonateAccount', [from], url)
    const call = { from, to: shares.token_address, data }
    const hash = await world.rpc('eth_sendTransaction', [call], url)
    const mined = async () => (await world.rpc('eth_getTransactionReceipt', [hash], url)) ?? undefined
    const receipt = await eventually(mined, 'the shares have moved')
    assert.equal((receipt as { status: string }).status, '0x1')
  }
  const marketBy = async (person: Person, slug: string): Promise<Market> => {
    const { body } = await person.call<{ markets: Market[] }>('GET /predmkt/markets?limit=50')
    const found = body.markets.find((market) => market.slug === slug)
    assert.ok(found, JSON.stringify(body.markets.map((market) => market.slug)))
    return found
  }
  const setUp = async () => {
    const person = await createFundedPerson(gateway.url)
    const early = await person.call('POST /predmkt/setup', { body: {} })
    assert.deepEqual([early.status, early.body.code], [409, 'disclaimer_required'])
    await person.call('POST /predmkt/disclaimer/acknowledge', { body: {} })
    await executed(person, '/predmkt/setup')
    return person
  }

  const trade = async (slug: string, protocol: string, { negRisk }: { negRisk: boolean }) => {
    const person = await setUp()
    const status = await statusOf(person)
    assert.deepEqual([status.setup_complete, status.protocols], [true, { v1: true, v2: true }])
    assert.equal(await world.balance(polygon, person.evm), 0n, 'the user has no coin for gas')

    const funded = await executed(person, '/predmkt/fund-safe', { amount_usd: '60', source_chain_id: base })
    const start = micros(funded.result.amount_usd!)
    assert.equal(await cashOf(person), start)

    await venue('POST', '/price', { market: slug, price: 0.4 })
    const market = await marketBy(person, slug)
    assert.deepEqual([market.protocol, market.neg_risk], [protocol, negRisk])
    const outcomeId = market.outcomes[0]!.outcome_id

    const quote = (
      await person.call<Quote>('POST /predmkt/quote', {
        body: { outcome_id: outcomeId, side: 'BUY', amount_usd: '20' },
      })
    ).body
    assert.equal(quote.complete, true, JSON.stringify(quote))
    const bought = await executed(person, '/predmkt/order', {
      outcome_id: outcomeId,
      side: 'BUY',
      order_type: 'FOK',
      amount_usd: '20',
      quote_id: quote.quote_id,
    })
    assert.equal(bought.result.settlement, 'confirmed')
    assert.equal(bought.result.settled_shares, quote.shares)
    assert.equal(bought.result.total_usd, quote.total_usd)
    const afterBuy = await cashOf(person)
    assert.equal(afterBuy, start - micros(quote.total_usd), 'every dollar of the purchase is accounted for')
    const position = (await positionOf(person, outcomeId))!
    assert.equal(position.size, quote.shares)
    await venue('POST', '/credit', { wallet: status.safe_address, amount: '3', token: 'usdce' })
    const held = await atVenue(person)
    assert.deepEqual(
      held.map(({ kind, symbol, balance, cost_basis_usd: cost }) => [kind, symbol, micros(balance), cost]),
      [
        ['token', 'USDC.e', micros('3'), null],
        ['token', 'pUSD', afterBuy, null],
        ['outcome_token', market.outcomes[0]!.outcome, micros(quote.shares), position.cost_usd],
      ],
    )
    assert.ok(held.every(({ value_usd }) => value_usd !== null))

    const resting = await executed(person, '/predmkt/order', {
      outcome_id: outcomeId,
      side: 'BUY',
      price: '0.05',
      size: '10',
    })
    assert.equal(resting.result.order_status, 'live')
    assert.equal(await cashOf(person), afterBuy - micros('0.5'))
    const open = (await person.call<{ orders: Order[] }>('GET /predmkt/orders/open')).body.orders
    assert.deepEqual(
      open.map(({ id, price }) => [id, price]),
      [[resting.result.order_id, '0.05']],
    )
    const cancelled = await executed(person, '/predmkt/order/cancel', { order_id: open[0]!.id })
    assert.deepEqual(cancelled.result, { canceled: [open[0]!.id], not_canceled: {} })
    assert.equal(await cashOf(person), afterBuy)

    const early = await person.call('POST /predmkt/redeem', { body: { condition_id: market.condition_id } })
    assert.deepEqual([early.status, early.body.code], [409, 'not_resolved'])
    await venue('POST', '/resolve', { market: slug, outcome: 'yes' })
    await eventually(
      async () => ((await positionOf(person, outcomeId))?.redeemable ? true : undefined),
      'the market is resolved',
    )
    const redeemed = await executed(person, '/predmkt/redeem', { condition_id: market.condition_id })
    assert.equal(redeemed.result.payout_usd, quote.shares)
    assert.equal(await positionOf(person, outcomeId), undefined)
    assert.deepEqual(
      (await atVenue(person)).map(({ symbol }) => symbol),
      ['USDC.e', 'pUSD'],
    )
    const end = await cashOf(person)
    assert.equal(end, afterBuy + micros(quote.shares), 'a share of the outcome that won pays one dollar')

    const usdc = world.manifest.contracts[polygon]!.usdc
    const before = await world.balance(polygon, person.evm, usdc)
    const withdrawn = await executed(person, '/predmkt/withdraw', { amount_usdc: String(Number(end) / 1e6) })
    assert.equal(micros(withdrawn.result.amount_usd!), end)
    assert.equal((await world.balance(polygon, person.evm, usdc)) - before, end)
    assert.equal(await cashOf(person), 0n)

    const { body: activity } = await person.call<{
      trades: { settlement: string }[]
      items: { type: string }[]
      pnl: { realized_usd: string }
    }>('GET /predmkt/activity')
    assert.deepEqual(
      activity.trades.map(({ settlement }) => settlement).filter((each) => each !== 'confirmed'),
      [],
    )
    assert.deepEqual(activity.items.map(({ type }) => type).sort(), ['deposit', 'redeem', 'withdrawal'])
    assert.equal(micros(activity.pnl.realized_usd), end - start)
  }

  test('on a negative-risk market of the first protocol', () =>
    trade('ada-winter-wins-the-mayoral-race', 'v1', { negRisk: true }))

  test('on a market of the second protocol', () =>
    trade('recession-declared-next-year', 'v2', { negRisk: false }))

  test('a take-profit rests for settled shares and sells them, and a stop-loss sells when the bid has fallen', async () => {
    const [person, other] = await Promise.all([setUp(), setUp()])
    await executed(person, '/predmkt/fund-safe', { amount_usd: '60' })
    await executed(other, '/predmkt/fund-safe', { amount_usd: '60' })
    const slug = 'beta-is-the-largest-company'
    await venue('POST', '/price', { market: slug, price: 0.4 })
    const market = await marketBy(person, slug)
    const outcomeId = market.outcomes[0]!.outcome_id
    const buy = (exits: object) =>
      executed(person, '/predmkt/order', {
        outcome_id: outcomeId,
        side: 'BUY',
        order_type: 'FOK',
        amount_usd: '10',
        ...exits,
      })
    const open = async () =>
      (await person.call<{ orders: (Order & { leg: string })[] }>('GET /predmkt/orders/open')).body.orders
    const sold = async () => ((await positionOf(person, outcomeId)) === undefined ? true : undefined)

    await buy({ take_profit_price: '0.45', stop_loss_price: '0.2' })
    await eventually(
      async () => (await open()).find(({ leg, status }) => leg === 'tp' && status === 'live'),
      'the take-profit rests',
    )
    const during = await person.call('POST /predmkt/order', {
      body: { outcome_id: outcomeId, side: 'SELL', order_type: 'FAK', amount_shares: '5' },
    })
    assert.deepEqual(
      [during.status, during.body.code],
      [409, 'no_position'],
      'the take-profit has the shares',
    )
    await venue('POST', '/price', { market: slug, price: 0.5 })
    await executed(other, '/predmkt/order', {
      outcome_id: outcomeId,
      side: 'BUY',
      price: '0.45',
      size: '30',
    })
    await eventually(sold, 'the take-profit has sold')
    await eventually(async () => ((await open()).length === 0 ? true : undefined), 'the stop-loss has ended')
    await executed(other, '/predmkt/order/cancel', { condition_id: market.condition_id })

    await venue('POST', '/price', { market: slug, price: 0.4 })
    await buy({ take_profit_percentage: '50', stop_loss_price: '0.3' })
    await eventually(
      async () =>
        (await open()).filter(({ status }) => status === 'live' || status === 'watched').length === 2
          ? true
          : undefined,
      'both exits are armed',
    )
    await venue('POST', '/price', { market: slug, price: 0.25 })
    await eventually(sold, 'the stop-loss has sold')
    await eventually(
      async () => ((await open()).length === 0 ? true : undefined),
      'the take-profit has ended',
    )
  })

  test('shares that came from elsewhere are listed without a cost, and those that left are not', async () => {
    const [person, other] = await Promise.all([setUp(), setUp()])
    await executed(person, '/predmkt/fund-safe', { amount_usd: '10' })
    const { body } = await person.call<{ markets: Market[] }>('GET /predmkt/markets?limit=50')
    const market = body.markets.find((each) => each.protocol === 'v1' && !each.neg_risk)!
    const outcomeId = market.outcomes[0]!.outcome_id
    const order = { outcome_id: outcomeId, side: 'BUY', order_type: 'FOK', amount_usd: '5' }
    await executed(person, '/predmkt/order', order)
    const shares = (await atVenue(person)).find(({ kind }) => kind === 'outcome_token')!
    const [from, to] = await Promise.all([statusOf(person), statusOf(other)])
    await moveShares(from.safe_address, to.safe_address, shares)
    const arrived = await eventually(async () => positionOf(other, outcomeId), 'the venue lists the shares')
    assert.deepEqual([arrived.size, arrived.cost_usd, arrived.unrealized_usd], [shares.balance, null, null])
    const [held] = await atVenue(other)
    assert.deepEqual([held?.kind, held?.amount, held?.cost_basis_usd], ['outcome_token', shares.amount, null])
    assert.equal(await positionOf(person, outcomeId), undefined)
  })

  test('money comes and goes by any chain, also while the venue takes one of its dollars alone', async () => {
    const person = await setUp()
    const funds = [
      { amount_usd: '30' },
      { amount_usd: '20', source_chain_id: solana, source_token_address: 'USDC' },
    ]
    await venue('POST', '/ramp', { ramp: 'onramp', asset: 'usdc', state: 'paused' })
    let cash = 0n
    for (const body of funds) {
      const funded = await executed(person, '/predmkt/fund-safe', body)
      cash += micros(funded.result.amount_usd!)
      assert.equal(await cashOf(person), cash)
    }
    await venue('POST', '/ramp', { ramp: 'onramp', asset: 'usdc', state: 'open' })

    const usdc = world.manifest.contracts[base]!.usdc
    const places = [
      { body: { destination_chain_id: base }, balance: () => world.balance(base, person.evm, usdc) },
      { body: { token: 'coin' }, balance: () => world.balance(polygon, person.evm) },
    ]
    for (const { body, balance } of places) {
      const before = await balance()
      const { result } = await executed(person, '/predmkt/withdraw', { amount_usdc: '10', ...body })
      assert.equal((await balance()) - before, BigInt(result.amount!), JSON.stringify(result))
      assert.ok(micros(result.amount_usd!) > micros('9'), JSON.stringify(result))
      cash -= micros('10')
      assert.equal(await cashOf(person), cash)
    }
  })

  test('the status says what the venue takes, and the key of a suspended user is revoked until the next set-up', async () => {
    const person = await setUp()
    await executed(person, '/predmkt/fund-safe', { amount_usd: '10' })
    const market = await marketBy(person, 'recession-declared-next-year')
    const order = { outcome_id: market.outcomes[0]!.outcome_id, side: 'BUY', price: '0.01', size: '10' }
    const trading = async () => {
      const { trading: now, trading_until: until } = await statusOf(person)
      return [now, until === null]
    }
    for (const [mode, shown, isOpenEnded] of [
      ['restarting', 'restarting', true],
      ['postOnly', 'post_only', false],
    ] as const) {
      await venue('POST', '/mode', { mode, forMs: 8_000 })
      const placed = executed(person, '/predmkt/order', order)
      await eventually(async () => ((await trading())[0] === shown ? true : undefined), `trading is ${shown}`)
      assert.deepEqual(await trading(), [shown, isOpenEnded])
      await placed
      await eventually(async () => ((await trading())[0] === 'open' ? true : undefined), 'trading is open')
    }
    await executed(person, '/predmkt/order/cancel', { cancel_all: true })

    using folder = dataFolder()
    const database = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
    after(() => database.end())
    const operator = operatorOf({ DATABASE_URL: gateway.databaseUrl, DATA_DIR: folder.path })
    await operator.act('left', 'users', 'freeze', person.agentId)
    const isRevoked = async () => {
      const { rows } = await database.query<{ open: string }>(
        `select count(*) as open from prediction_key k join app_user u on u.id = k.user_id
         where u.agent_id = $1 and k.revoked_at is null`,
        [person.agentId],
      )
      return rows[0]?.open === '0' ? true : undefined
    }
    await eventually(isRevoked, 'the key is revoked')
    await operator.act('came back', 'users', 'unfreeze', person.agentId)
    const early = await person.call('POST /predmkt/order', { body: order })
    assert.deepEqual([early.status, early.body.code], [409, 'setup_incomplete'])
    await executed(person, '/predmkt/setup')
    await executed(person, '/predmkt/order', order)
    await executed(person, '/predmkt/order/cancel', { cancel_all: true })
  })
})
