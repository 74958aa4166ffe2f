import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually, freshGateway } from '../harness/gateway.ts'
import {
  atVenue,
  cashOf,
  type Ended,
  executed,
  type Market,
  marketBy,
  micros,
  moveOutcomeShares,
  positionOf,
  predictionVenue,
  run,
  setUp,
  statusOf,
} from './predmkt-calls.ts'
import { createFundedPerson } from './users.ts'
import { base, polygon, solana, type World, worldOf } from './world.ts'

describe('the wallet of a user at the prediction market', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let database: pg.Pool
  before(async () => {
    gateway = await freshGateway(
      { RATE_MONEY: '0', RATE_EXIT: '0', SPONSOR_USER_DAY: '1' },
      { ownWorld: 'the venue pauses a dollar, restarts, and shares are moved' },
    )
    world = await worldOf(gateway.world)
    database = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
  })
  after(async () => {
    await database?.end()
    await gateway?.[Symbol.asyncDispose]()
  })

  const venue = (method: string, path: string, body?: object) =>
    predictionVenue(gateway.world)(method, path, body)
  const setUpPerson = async () => {
    const person = await createFundedPerson(gateway.url)
    await setUp(person)
    return person
  }
  test('shares that came from elsewhere are listed without a cost, and those that left are not', async () => {
    const [person, other] = await Promise.all([setUpPerson(), setUpPerson()])
    await executed(person, '/predmkt/fund-safe', { amount_usd: '10' })
    const { body } = await person.call<{ markets: Market[] }>('GET /predmkt/markets?limit=50')
    const market = body.markets.find((each) => each.protocol === 'v1' && !each.neg_risk)!
    const outcomeId = market.outcomes[0]!.outcome_id
    const order = { outcome_id: outcomeId, side: 'BUY', order_type: 'FOK', amount_usd: '5' }
    await executed(person, '/predmkt/order', order)
    const shares = (await atVenue(person)).find(({ kind }) => kind === 'outcome_token')!
    const [from, to] = await Promise.all([statusOf(person), statusOf(other)])
    const units = BigInt(shares.amount)
    await moveOutcomeShares(world, { from: from.safe_address, to: to.safe_address, market, outcomeId, units })
    const arrived = await eventually(async () => positionOf(other, outcomeId), 'the venue lists the shares')
    assert.deepEqual([arrived.size, arrived.cost_usd, arrived.unrealized_usd], [shares.balance, null, null])
    const [held] = await atVenue(other)
    assert.deepEqual([held?.kind, held?.amount, held?.cost_basis_usd], ['outcome_token', shares.amount, null])
    assert.equal(await positionOf(person, outcomeId), undefined)
  })

  test('money comes and goes by any chain, also while the venue takes one of its dollars alone', async () => {
    const person = await setUpPerson()
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

  test('money whose second leg is refused for its gas stays in the own wallet, and the task says so', async () => {
    const person = await setUpPerson()
    await executed(person, '/predmkt/fund-safe', { amount_usd: '30' })
    const usdc = world.manifest.contracts[polygon]!.usdc
    const usdcThere = () => world.balance(polygon, person.evm, usdc)
    const was = await usdcThere()
    /** What a sponsor pays for the user today on Polygon is used up. */
    const spendGas = () =>
      database.query(
        `update sponsor_day set wei = wei + 1e18 where chain_id = '137' and user_id =
           (select user_id from wallet where lower(address) = lower($1))`,
        [person.evm],
      )
    await venue('POST', '/realism', { relayerLag: { rate: 1, minMs: 3_000, maxMs: 3_000 } })
    const body = { amount_usdc: '10', destination_chain_id: base }
    const { body: accepted } = await person.call<Ended>('POST /predmkt/withdraw', { body })
    await spendGas()
    const withdrawn = (await person.ended(accepted.task_id)) as unknown as Ended
    assert.deepEqual([withdrawn.status, withdrawn.outcome], ['failed', 'partial'], JSON.stringify(withdrawn))
    assert.match(withdrawn.error!.message, /gas budget is used up.* 10 USDC are in your wallet on Polygon/)
    assert.equal((await usdcThere()) - was, micros('10'))

    await venue('POST', '/realism', { preset: 'quiet' })
    const before = await usdcThere()
    const terms = { amount_usd: '20', source_chain_id: base }
    const funded = await run(person, '/predmkt/fund-safe', terms)
    assert.deepEqual([funded.status, funded.outcome], ['failed', 'partial'], JSON.stringify(funded))
    assert.match(funded.error!.message, /gas budget is used up.* USDC are in your wallet on Polygon/)
    const { remaining } = funded.result as unknown as { remaining: { place: string; amount: string } }
    assert.deepEqual([remaining.place, BigInt(remaining.amount)], ['wallet', (await usdcThere()) - before])
  })

  test('the status says what the venue takes, and the key of a suspended user is revoked until the next set-up', async () => {
    const person = await setUpPerson()
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
